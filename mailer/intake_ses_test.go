package mailer

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestSES_ReadsItsEvents(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		event string
		want  *Fact
	}{
		"a permanent bounce": {`{"eventType":"Bounce","mail":{"messageId":"m1"},"bounce":{"bounceType":"Permanent","timestamp":"2026-03-01T12:00:00Z","bouncedRecipients":[{"status":"5.1.1","diagnosticCode":"smtp; 550"}]}}`,
			&Fact{Kind: Bounced, ProviderMessageID: "m1", Status: "5.1.1", Permanent: true, Detail: "smtp; 550"}},
		"a transient bounce": {`{"notificationType":"Bounce","mail":{"messageId":"m1"},"bounce":{"bounceType":"Transient","bouncedRecipients":[{"status":"5.2.2"}]}}`,
			&Fact{Kind: Bounced, ProviderMessageID: "m1", Status: "5.2.2"}},
		"an absence notice is none": {`{"notificationType":"Bounce","mail":{"messageId":"m1"},"bounce":{"bounceType":"Transient","bouncedRecipients":[{"emailAddress":"a@b.example"}]}}`, nil},
		"a complaint":               {`{"eventType":"Complaint","mail":{"messageId":"m1","commonHeaders":{"messageId":"<x@shop.example>"}}}`, &Fact{Kind: Complained, ProviderMessageID: "m1", MessageID: "<x@shop.example>"}},
		"a tag names it":            {`{"eventType":"Delivery","mail":{"messageId":"m1","tags":{"notification":["notification_1"]}}}`, &Fact{Kind: Delivered, ProviderMessageID: "m1", MessageID: "<notification_1@ses>"}},
		"an open is none":           {`{"eventType":"Open","mail":{"messageId":"m1"}}`, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			facts, err := sesEvent("key", []byte(tt.event))
			if err != nil {
				t.Fatal(err)
			}
			var got *Fact
			if len(facts) == 1 {
				got = &facts[0]
			}
			if diff := cmp.Diff(tt.want, got, cmpopts.IgnoreFields(Fact{}, "EventKey", "OccurredAt")); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestSNS_TrustsAmazonsHostsOnly(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]bool{
		"https://sns.eu-west-1.amazonaws.com/SimpleNotificationService-1.pem":     true,
		"https://sns.cn-north-1.amazonaws.com.cn/SimpleNotificationService-1.pem": true,
		"http://sns.eu-west-1.amazonaws.com/x.pem":                                false,
		"https://sns.eu-west-1.amazonaws.com.evil.example/x.pem":                  false,
		"https://evil.example/sns.eu-west-1.amazonaws.com/x.pem":                  false,
		"https://sns.eu-west-1.amazonaws.com@evil.example/x.pem":                  false,
		"https://sns.eu-west-1.amazonaws.com:8443/x.pem":                          false,
		"https://bucket.s3.amazonaws.com/x.pem":                                   false,
	} {
		if got := ofAmazon(address); got != want {
			t.Errorf("%s is trusted: %v, want %v", address, got, want)
		}
	}
}

func TestSNS_SignsTheMembersInTheirOrder(t *testing.T) {
	t.Parallel()
	s := snsMessage{Type: "Notification", MessageId: "id", TopicArn: "arn", Message: "text", Timestamp: "now"}
	if got, want := s.signed(), "Message\ntext\nMessageId\nid\nTimestamp\nnow\nTopicArn\narn\nType\nNotification\n"; got != want {
		t.Errorf("signed over %q, want %q", got, want)
	}
	s.Type, s.Token, s.SubscribeURL = "SubscriptionConfirmation", "token", "https://sns"
	if got := s.signed(); !strings.Contains(got, "SubscribeURL\nhttps://sns\n") || !strings.Contains(got, "Token\ntoken\n") {
		t.Errorf("signed over %q", got)
	}
}
