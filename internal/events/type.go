package events

import "regexp"

// maxTypeLength bounds an event type's name, in characters.
const maxTypeLength = 128

// TypeRule says in a sentence what IsType accepts.
const TypeRule = "Use letters, digits and underscores in parts joined by dots or hyphens, such as order.created; 128 characters at most."

// typePattern follows Standard Webhooks, section "Event types": full-stop delimited names of [a-zA-Z0-9_]. Hyphens are
// taken as well, because many systems have them in their names already.
var typePattern = regexp.MustCompile(`^[A-Za-z0-9_]+([.-][A-Za-z0-9_]+)*$`)

// IsType reports whether name can be the name of an event type.
func IsType(name string) bool {
	return len(name) <= maxTypeLength && typePattern.MatchString(name)
}
