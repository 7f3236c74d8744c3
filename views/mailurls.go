package views

import "net/url"

// The addresses of mail. The project "" is the installation, whose mails confirm
// addresses; its pages are an admin's.

func mailBase(project string, segments ...string) string {
	if project == "" {
		return join(append([]string{"admin", "account-mail"}, segments...)...)
	}
	return inProject(project, append([]string{"mail"}, segments...)...)
}

// MailURL lists notifications.
func MailURL(project string) string { return mailBase(project) }

// MailFilterURL lists those that a filter lets through.
func MailFilterURL(project string, f MailFilter) string {
	return withQuery(mailBase(project), f.values())
}
func NotificationURL(project, id string) string { return mailBase(project, id) }
func MailHTMLURL(project, id string) string     { return mailBase(project, id, "html") }
func MailSourceURL(project, id string) string   { return mailBase(project, id, "source") }
func SendAgainURL(project, id string) string    { return mailBase(project, id, "send-again") }

// MailView is one side of a mail on its page.
type MailView string

// The sides of a mail. The zero value is the HTML where there is some, else the
// text.
const (
	MailAsHTML    MailView = ""
	MailAsText    MailView = "text"
	MailAsHeaders MailView = "headers"
	MailAsSource  MailView = "source"
)

// MailViewFrom reads what MailViewURL wrote; anything else is the first side.
func MailViewFrom(q url.Values) MailView {
	switch v := MailView(q.Get("view")); v {
	case MailAsText, MailAsHeaders, MailAsSource:
		return v
	default:
		return MailAsHTML
	}
}

// MailViewURL shows a mail from one side.
func MailViewURL(project, id string, v MailView) string {
	return withQuery(NotificationURL(project, id), url.Values{"view": {string(v)}}) + "#content"
}

// SuppressionsURL lists who gets no mail.
func SuppressionsURL(project string) string { return inProject(project, "suppressions") }

// SuppressionsPageURL is the list at another cursor.
func SuppressionsPageURL(project, after, before string) string {
	return withQuery(SuppressionsURL(project), url.Values{"after": {after}, "before": {before}})
}
func RemoveSuppressionURL(project, id string) string {
	return inProject(project, "suppressions", id, "remove")
}
func EraseRecipientURL(project string) string { return inProject(project, "recipients", "erase") }

// MailSettingsURL also takes the POST of the form.
func MailSettingsURL(project string) string { return inProject(project, "settings", "mail") }

// MailCheckURL is the settings with what DNS says about the sender's domain.
func MailCheckURL(project string) string { return MailSettingsURL(project) + "?check=1#domain" }
func MailTestURL(project string) string  { return inProject(project, "settings", "mail", "test") }
func MailClearURL(project string) string { return inProject(project, "settings", "mail", "clear") }

// MailFilter is the query of the list of notifications.
type MailFilter struct {
	// Query is an order's id or a whole address; Show is "captured" or empty.
	Query, Show   string
	After, Before string
}

// MailFilterFrom reads what MailFilterURL wrote.
func MailFilterFrom(q url.Values) MailFilter {
	return MailFilter{Query: q.Get("q"), Show: q.Get("show"), After: q.Get("after"), Before: q.Get("before")}
}

func (f MailFilter) values() url.Values {
	return url.Values{"q": {f.Query}, "show": {f.Show}, "after": {f.After}, "before": {f.Before}}
}

// Page returns the same filter at another cursor.
func (f MailFilter) Page(after, before string) MailFilter {
	f.After, f.Before = after, before
	return f
}

func (f MailFilter) narrowed() bool { return f.Query != "" || f.Show != "" }
