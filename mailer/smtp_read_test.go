package mailer

import "testing"

func TestReadReply_EveryRowOfTheTable(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		stage    Stage
		code     int
		enhanced string
		want     Verdict
		suppress bool
	}{
		"250 after the dot is acceptance":             {StageDot, 250, "2.0.0", Accepted, false},
		"450 at RCPT is tried again":                  {StageRcpt, 450, "4.2.0", Failed, false},
		"451 after the dot is tried again":            {StageDot, 451, "4.3.0", Failed, false},
		"454 at AUTH is tried again":                  {StageAuth, 454, "4.7.0", Failed, false},
		"421 at connect asks for a pause":             {StageConnect, 421, "", Later, false},
		"421 at MAIL asks for a pause":                {StageMail, 421, "4.3.2", Later, false},
		"421 after the dot asks for a pause":          {StageDot, 421, "4.3.2", Later, false},
		"554 at connect is the relay's matter":        {StageConnect, 554, "", Refused, false},
		"550 at EHLO is the relay's matter":           {StageEHLO, 550, "5.7.1", Refused, false},
		"502 at STARTTLS is the relay's matter":       {StageSTARTTLS, 502, "5.5.1", Refused, false},
		"535 at AUTH is our matter":                   {StageAuth, 535, "5.7.8", Refused, false},
		"550 at MAIL is final":                        {StageMail, 550, "5.7.1", Rejected, false},
		"550 5.1.1 at RCPT is nobody there":           {StageRcpt, 550, "5.1.1", Rejected, true},
		"550 5.1.2 at RCPT is nobody there":           {StageRcpt, 550, "5.1.2", Rejected, true},
		"550 5.1.3 at RCPT is nobody there":           {StageRcpt, 550, "5.1.3", Rejected, true},
		"550 5.1.6 at RCPT is nobody there":           {StageRcpt, 550, "5.1.6", Rejected, true},
		"556 5.1.10 at RCPT is nobody there":          {StageRcpt, 556, "5.1.10", Rejected, true},
		"550 5.2.1 at RCPT is nobody there":           {StageRcpt, 550, "5.2.1", Rejected, true},
		"550 5.1.1 after the dot is nobody there":     {StageDot, 550, "5.1.1", Rejected, true},
		"550 5.2.2 is a full mailbox, somebody there": {StageRcpt, 550, "5.2.2", Rejected, false},
		"550 5.7.1 is a refusal, somebody there":      {StageRcpt, 550, "5.7.1", Rejected, false},
		"550 alone suppresses nobody":                 {StageRcpt, 550, "", Rejected, false},
		"552 at RCPT alone is tried again":            {StageRcpt, 552, "", Failed, false},
		"552 4.5.3 at RCPT is tried again":            {StageRcpt, 552, "4.5.3", Failed, false},
		"552 5.5.3 at RCPT is tried again":            {StageRcpt, 552, "5.5.3", Failed, false},
		"552 5.2.2 at RCPT is final":                  {StageRcpt, 552, "5.2.2", Rejected, false},
		"552 after the dot is final":                  {StageDot, 552, "", Rejected, false},
		"450 beats 5.1.1":                             {StageRcpt, 450, "5.1.1", Failed, false},
		"550 beats 4.2.1":                             {StageRcpt, 550, "4.2.1", Rejected, false},
		"554 at DATA is final":                        {StageData, 554, "", Rejected, false},
		"silence before the dot is tried again":       {StageBody, 0, "", Failed, false},
		"silence after the dot is unknown":            {StageDot, 0, "", Unknown, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v, suppress := readReply(tt.stage, tt.code, tt.enhanced)
			if v != tt.want || suppress != tt.suppress {
				t.Errorf("read as %s, suppress %v; want %s, %v", v, suppress, tt.want, tt.suppress)
			}
		})
	}
}

func TestEnhancedOf(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"5.1.1 no such user":    "5.1.1",
		"5.1.10":                "5.1.10",
		"2.0.0 Ok: queued":      "2.0.0",
		"3.1.1 odd":             "",
		"no such user 5.1.1":    "",
		"5.1.1234 too long":     "",
		"4.7.1\nsecond line":    "4.7.1",
		"":                      "",
		"192.0.2.1 is not here": "",
	} {
		if got := enhancedOf(text); got != want {
			t.Errorf("%q has the code %q, want %q", text, got, want)
		}
	}
}
