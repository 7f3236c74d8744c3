package web

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"entrega/internal/egress"
	"entrega/internal/store"
	"entrega/internal/tenant"
	"entrega/jobs"
	"entrega/mailer"
	"entrega/views"
)

// notifyCommand is the curl line that makes a first mail.
func notifyCommand(public string) string {
	return "curl " + public + "/v1/notifications \\\n  -H 'Authorization: Bearer entrega_…' -H 'Content-Type: application/json' \\\n" +
		`  -d '{"orderId":"SO-1","to":"you@example.com","subject":"New order SO-1","text":"You have a new order."}'`
}

func presentMail(p *views.MailProps, v *visit, list store.List[mailer.Listed]) {
	for _, n := range list.Rows {
		p.Rows = append(p.Rows, presentMailRow(v, n))
	}
	if list.Prev != "" {
		p.Pager.NewerURL = views.MailFilterURL(p.Layout.Project.ID, p.Filter.Page("", list.Prev))
	}
	if list.Next != "" {
		p.Pager.OlderURL = views.MailFilterURL(p.Layout.Project.ID, p.Filter.Page(list.Next, ""))
	}
}

// subjectFor is a mail's subject, which is payload. That of a mail about access names who asks, which is for those who decide.
func subjectFor(v *visit, n mailer.Listed) string {
	switch {
	case n.ErasedAt != nil:
		return "Content removed"
	case n.Private() && !v.can(tenant.PermManageTeam):
		return "About access to the project"
	case !v.can(tenant.PermSeePayloads):
		return "Mail about an order"
	default:
		return n.Subject
	}
}

func presentMailRow(v *visit, n mailer.Listed) views.MailRow {
	return views.MailRow{ID: n.ID, Kind: n.Kind, Order: n.OrderID, Recipient: n.Recipient, Subject: subjectFor(v, n), State: views.MailState(n.State),
		Note: mailStateNote(n), CreatedAt: n.CreatedAt}
}

// mailStateNote says what the word of the state does not.
func mailStateNote(n mailer.Listed) string {
	switch n.State {
	case mailer.StateWaiting:
		return mailReason(n.Reason)
	case mailer.StateFailed, mailer.StateSuppressed, mailer.StateDropped, mailer.StateRetrying:
		return mailReason(n.Reason)
	case mailer.StateAccepted:
		return "not told yet whether it arrived"
	case mailer.StateCaptured:
		return "kept here, not sent"
	case mailer.StateBounced, mailer.StateComplained, mailer.StateDelayed, mailer.StateDelivered:
		if n.Captured {
			return "simulated; kept here, not sent"
		}
		return ""
	default:
		return ""
	}
}

// mailReason says a recorded word as people would.
func mailReason(reason string) string {
	words := map[string]string{
		mailer.ReasonRecipientCap:    "30 mails to this recipient in this hour; goes on with the next",
		mailer.ReasonTransportPaused: "the transport rests",
		mailer.ReasonRelayBusy:       "the relay asked for a pause",
		jobs.ReasonRetryAfter:        "the mail API asked for a pause",
		mailer.ReasonSuppressed:      "the recipient bounced or complained before",
		mailer.ReasonBurstCap:        "more than 5 notices in this hour, dropped on purpose",
		mailer.ReasonErased:          "the address was erased",
		mailer.ReasonContentRemoved:  "what it said was removed",
		mailer.ReasonConfirmed:       "the address was confirmed already",
		jobs.ReasonRejected:          "rejected for good",
		jobs.ReasonHorizon:           "its time was over",
		jobs.ReasonAttemptsExhausted: "the attempts were used up",
		jobs.ReasonFailed:            "the last attempt failed",
		mailer.ReasonTestFailed:      "the test failed",
	}
	if w, ok := words[reason]; ok {
		return w
	}
	return spaced(reason)
}

func presentNotification(p *views.NotificationProps, v *visit, n mailer.Listed, records []jobs.Record, words map[int]string, facts []mailer.RecordedFact) {
	p.Row = presentMailRow(v, n)
	p.Sentence = mailSentence(n)
	p.From, p.MessageID, p.Transport, p.Provider = n.From, n.MessageID, n.Transport, n.ProviderID
	p.Captured, p.Duplicate, p.Erased = n.Captured, n.PossibleDuplicate, n.ErasedAt != nil
	if v.project.ID != "" && n.TaskID != 0 {
		p.TaskID = strconv.FormatInt(n.TaskID, 10)
	}
	if !p.CanSee {
		words = nil // Servers like to repeat what they were told.
	}
	p.Story = mailStory(n, records, words, facts)
	if !p.CanSee || p.Erased {
		return
	}
	if n.Address() != "" {
		p.Row.Recipient = n.Address()
	}
	p.Text, p.HasHTML = n.Text, n.HTML != ""
	if p.View == views.MailAsHTML && !p.HasHTML {
		p.View = views.MailAsText
	}
	p.Headers = []views.Header{{Name: "From", Value: n.From}, {Name: "To", Value: n.Address()}, {Name: "Subject", Value: n.Subject},
		{Name: "Date", Value: n.Date().Format("Mon, 02 Jan 2006 15:04:05 -0700")}, {Name: "Message-ID", Value: n.MessageID}, {Name: "Auto-Submitted", Value: "auto-generated"}}
}

// mailSentence says how far the mail is, and claims no more than is known.
func mailSentence(n mailer.Listed) string {
	if n.Captured && n.Feedback != "" {
		return "Simulated by the address. The mail was kept here; nothing was sent."
	}
	switch n.State {
	case mailer.StateQueued:
		return "Waits for its turn."
	case mailer.StateSending:
		return "An attempt is under way."
	case mailer.StateRetrying:
		return "The last attempt failed; it is tried again."
	case mailer.StateWaiting:
		return "Comes back later without an attempt spent: " + mailReason(n.Reason) + "."
	case mailer.StateAccepted:
		return "The transport has it. Whether it arrived was not told yet."
	case mailer.StateCaptured:
		return "Kept here. Nothing was sent."
	case mailer.StateDelivered:
		return "The provider told that it arrived."
	case mailer.StateDelayed:
		return "The provider told that it is delayed and tries on."
	case mailer.StateBounced:
		return "The provider told that it came back."
	case mailer.StateComplained:
		return "The recipient marked it as spam."
	case mailer.StateCancelled:
		return "Somebody cancelled it."
	default:
		return "Will not be sent: " + mailReason(n.Reason) + "."
	}
}

// farSideWords are the first words of each answer, by the record's place in the chain.
func farSideWords(excerpts []jobs.StoredExcerpt) map[int]string {
	words := map[int]string{}
	for _, e := range excerpts {
		said := strings.Join(strings.Fields(strings.ToValidUTF8(string(e.ResponseBody), "\uFFFD")), " ")
		if runes := []rune(said); len(runes) > mostWords {
			said = string(runes[:mostWords]) + "…"
		}
		words[e.Seq] = said
	}
	return words
}

// mostWords bounds an answer in the time line, in characters; the page of the task has more.
const mostWords = 200

// mailStory is the time line: asked for, attempts with the far side's words, facts that came later.
func mailStory(n mailer.Listed, records []jobs.Record, words map[int]string, facts []mailer.RecordedFact) []views.MailMoment {
	story := []views.MailMoment{{At: n.CreatedAt, Tone: views.Calm, Title: "Queued", Detail: "Stored with its task; its bytes are fixed from here on."}}
	for _, r := range records {
		m := views.MailMoment{At: r.StartedAt, Tone: views.Warn, Title: fmt.Sprintf("Attempt %d: %s", r.Attempt, spaced(string(r.Decision))), Detail: orEmpty(r.Error)}
		switch r.Decision {
		case jobs.VerdictAccepted:
			m.Tone, m.Title, m.Detail = views.Good, fmt.Sprintf("Attempt %d: accepted", r.Attempt), "The far side answered that it has the mail."
			if words[r.Seq] != "" {
				m.Detail = "The far side answered: " + words[r.Seq]
			}
			if n.Captured {
				m.Tone, m.Title, m.Detail = views.Calm, fmt.Sprintf("Attempt %d: captured", r.Attempt), "Kept here; nothing was sent."
			}
		case jobs.VerdictSnoozed:
			m.Tone = views.Wait
		case jobs.VerdictPermanentFailure, jobs.VerdictCancelled:
			m.Tone = views.Bad
		}
		if r.Decision != jobs.VerdictAccepted && orEmpty(r.ErrorType) == string(egress.HttpError) && words[r.Seq] != "" {
			m.Detail += " It said: " + words[r.Seq]
		}
		if r.NextAttemptAt != nil {
			m.Detail += " Eligible again from " + r.NextAttemptAt.UTC().Format("15:04:05") + " UTC: " + mailReason(r.Reason) + "."
		}
		story = append(story, m)
	}
	for _, f := range facts {
		story = append(story, views.MailMoment{At: f.OccurredAt.UTC(), Tone: factTone(f.Kind), Title: capital(string(f.Kind)), Detail: factDetail(f)})
	}
	slices.SortStableFunc(story, func(a, b views.MailMoment) int { return cmp.Compare(a.At.UnixNano(), b.At.UnixNano()) })
	return story
}

// factDetail says who told a fact, in whose words.
func factDetail(f mailer.RecordedFact) string {
	if f.Provider == string(mailer.Capture) {
		return "Simulated by the address; no provider told it."
	}
	return strings.TrimSpace("Told by " + f.Provider + ". " + strings.TrimSpace(f.Status+" "+f.Detail))
}

func factTone(f mailer.Feedback) views.Tone {
	switch f {
	case mailer.Delivered:
		return views.Good
	case mailer.Delayed:
		return views.Warn
	default:
		return views.Bad
	}
}

func presentSuppressions(p *views.SuppressionsProps, v *visit, list store.List[mailer.Suppression]) {
	for _, s := range list.Rows {
		recipient := s.Address
		if recipient != "" && !v.can(tenant.PermSeePayloads) {
			recipient = mailer.Mask(recipient)
		}
		p.Rows = append(p.Rows, views.SuppressionRow{ID: s.ID, Recipient: recipient, Reason: spaced(string(s.Reason)), Detail: s.Detail, NotificationID: s.NotificationID, At: s.CreatedAt})
	}
	if list.Prev != "" {
		p.Pager.NewerURL = views.SuppressionsPageURL(p.Layout.Project.ID, "", list.Prev)
	}
	if list.Next != "" {
		p.Pager.OlderURL = views.SuppressionsPageURL(p.Layout.Project.ID, list.Next, "")
	}
}
