package webhooks

import "testing"

func TestSend_Ends(t *testing.T) { Send() }
