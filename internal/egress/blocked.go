package egress

// Rule names the check of the guard that refused a target. The values are stable: they may be stored and compared.
type Rule string

// The rules, in the order in which [Door.CheckURL] tests them.
const (
	// RuleURL means that the text is no usable URL: unreadable, with spaces, control characters or a backslash.
	RuleURL Rule = "url"
	// RuleScheme means that the scheme is neither https nor, where the installation allows it, http.
	RuleScheme Rule = "scheme"
	// RuleUserinfo means that the URL holds a user name or a password.
	RuleUserinfo Rule = "userinfo"
	// RuleHost means that the host is missing or is no host name or IP address in its usual form.
	RuleHost Rule = "host"
	// RulePort means that the port is out of range or belongs to a well-known service that does not speak HTTP.
	RulePort Rule = "port"
	// RuleName means that the host name is reserved for local use.
	RuleName Rule = "name"
	// RuleAddress means that the address, written in the URL or resolved from its name, is not one to call.
	RuleAddress Rule = "address"
)

// BlockedError means that the guard refused a target. Rule and Sentence may be shown to the tenant who chose the
// target: an address appears only when the URL itself spells it.
type BlockedError struct {
	Rule Rule
	// Sentence says what is wrong and how to mend it.
	Sentence string
}

func (e *BlockedError) Error() string { return e.Sentence }
