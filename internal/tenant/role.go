package tenant

// Role is what a member is in one project.
type Role string

// The roles. What each may do is in its permissions.
const (
	RoleOwner  Role = "owner"
	RoleOnCall Role = "on_call"
	RoleViewer Role = "viewer"
)

// Roles lists every role, the one that may do most first.
func Roles() []Role { return []Role{RoleOwner, RoleOnCall, RoleViewer} }

// Valid reports whether r is one of Roles.
func (r Role) Valid() bool { return r == RoleOwner || r == RoleOnCall || r == RoleViewer }

// Scope is what an API key was made for.
type Scope string

// The scopes of an API key.
const (
	ScopePublish Scope = "publish"
	ScopeRead    Scope = "read"
	ScopeManage  Scope = "manage"
)

// Scopes lists every scope, the narrowest first.
func Scopes() []Scope { return []Scope{ScopePublish, ScopeRead, ScopeManage} }

// Valid reports whether s is one of Scopes.
func (s Scope) Valid() bool { return s == ScopePublish || s == ScopeRead || s == ScopeManage }

// Permission is one thing that may be allowed.
type Permission string

// The permissions. All but PermAdmin are about one project.
const (
	PermSee             Permission = "see"
	PermSeePayloads     Permission = "see_payloads" // payloads, headers and addresses in clear
	PermRetry           Permission = "retry"
	PermCancel          Permission = "cancel"
	PermRedeliver       Permission = "redeliver"
	PermAcknowledge     Permission = "acknowledge"
	PermSendTest        Permission = "send_test"
	PermPauseEndpoint   Permission = "pause_endpoint"
	PermManageEndpoints Permission = "manage_endpoints"
	PermReactivate      Permission = "reactivate"
	PermPublish         Permission = "publish"
	PermManageKeys      Permission = "manage_keys"
	PermManageTeam      Permission = "manage_team"
	PermChooseProfile   Permission = "choose_profile"
	PermAdmin           Permission = "admin" // of the installation, not of a project
)

// Permissions lists every permission.
func Permissions() []Permission {
	return []Permission{
		PermSee, PermSeePayloads, PermRetry, PermCancel, PermRedeliver, PermAcknowledge, PermSendTest, PermPauseEndpoint,
		PermManageEndpoints, PermReactivate, PermPublish, PermManageKeys, PermManageTeam, PermChooseProfile, PermAdmin,
	}
}

// allows says what a role may do in its own project. An unknown role may do nothing.
func (r Role) allows(p Permission) bool {
	switch r {
	case RoleOwner:
		return p.ofProject()
	case RoleOnCall:
		switch p {
		case PermSee, PermSeePayloads, PermRetry, PermCancel, PermRedeliver, PermAcknowledge, PermSendTest, PermPauseEndpoint:
			return true
		}
	case RoleViewer:
		return p == PermSee
	}
	return false
}

// allows says what a key with this scope may do in its own project. No key makes keys or members, so a leaked one can be
// revoked and is then gone for good.
func (s Scope) allows(p Permission) bool {
	switch s {
	case ScopePublish:
		return p == PermPublish
	case ScopeRead:
		return p == PermSee || p == PermSeePayloads
	case ScopeManage:
		return p.ofProject() && p != PermManageKeys && p != PermManageTeam
	}
	return false
}

// ofProject reports whether p is a known permission that a project's owner can hold.
func (p Permission) ofProject() bool {
	switch p {
	case PermSee, PermSeePayloads, PermRetry, PermCancel, PermRedeliver, PermAcknowledge, PermSendTest, PermPauseEndpoint,
		PermManageEndpoints, PermReactivate, PermPublish, PermManageKeys, PermManageTeam, PermChooseProfile:
		return true
	}
	return false
}
