package tenant

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"entrega/internal/store"
)

// ErrForbidden means that the actor may see the project but not do this in it.
var ErrForbidden = errors.New("you may not do this")

// ActorKind says what sort of actor did something.
type ActorKind string

// The kinds of actors.
const (
	ActorUser   ActorKind = "user"
	ActorAPIKey ActorKind = "api_key"
	ActorSystem ActorKind = "system" // Entrega itself, such as an automatic disable
	ActorCLI    ActorKind = "cli"    // a person on the machine, with the command line
)

// Actor is whoever asks for something, and as what. Its zero value may do nothing.
type Actor struct {
	Kind ActorKind
	// ID is the user's or key's id, or the part of Entrega that acts.
	ID string
	// Name is kept in the audit log, so that a row reads well after its user or key is gone.
	Name string
	// ProjectID is the project that Role or Scopes are about, and that audit rows belong to; empty outside any project.
	ProjectID string
	// Role is a member's role; empty for an admin who is not a member.
	Role Role
	// Admin says that the user is an admin of the installation.
	Admin bool
	// Scopes are an API key's.
	Scopes []Scope
}

// System is Entrega acting by itself; part says which part of it, such as "endpoint health".
func System(part string) Actor { return Actor{Kind: ActorSystem, ID: part, Name: part} }

// CLI is a person who runs a command on the machine. Whoever can do that can also read the database, so nothing is refused.
func CLI(user string) Actor { return Actor{Kind: ActorCLI, ID: user, Name: user} }

// In is the same actor acting on one project, so that its audit rows belong there. It grants nothing: a member or a key
// keeps no rights in a project that is not its own.
func (a Actor) In(projectID string) Actor {
	if a.ProjectID != projectID {
		a.Role, a.Scopes = "", nil
	}
	a.ProjectID = projectID
	return a
}

// Can reports whether the actor may do p in its own project.
func (a Actor) Can(p Permission) bool {
	switch a.Kind {
	case ActorSystem, ActorCLI:
		return true
	case ActorUser:
		return a.Admin || a.ProjectID != "" && a.Role.allows(p)
	case ActorAPIKey:
		if a.ProjectID == "" {
			return false
		}
		for _, s := range a.Scopes {
			if s.allows(p) {
				return true
			}
		}
	}
	return false
}

// Require is Can as an error: nil, or one that wraps ErrForbidden.
func (a Actor) Require(p Permission) error {
	if a.Can(p) {
		return nil
	}
	return fmt.Errorf("%w: it needs the permission %s", ErrForbidden, p)
}

// RequireIn is Require for an action on projectID. To an actor of another project that project does not exist, so the
// error is then store.ErrNotFound.
func (a Actor) RequireIn(projectID string, p Permission) error {
	if projectID == "" || a.ProjectID != projectID && !a.everywhere() {
		return store.ErrNotFound
	}
	return a.Require(p)
}

// everywhere reports whether the actor's rights hold in every project.
func (a Actor) everywhere() bool {
	return a.Kind == ActorSystem || a.Kind == ActorCLI || a.Kind == ActorUser && a.Admin
}

// ActorOf makes an actor of a user outside any project.
func ActorOf(u User) Actor {
	return Actor{Kind: ActorUser, ID: u.ID, Name: u.Email, Admin: u.Admin}
}

// ActorInProject makes an actor of a user in a project, with the role of this moment. It fails with store.ErrNotFound when
// the user is neither a member nor an admin: a stranger cannot tell such a project from one that does not exist.
func ActorInProject(ctx context.Context, db store.DB, userID, projectID string) (Actor, error) {
	a := Actor{Kind: ActorUser, ID: userID, ProjectID: projectID}
	err := db.QueryRow(ctx, `
		select u.email, u.is_admin, coalesce(m.role, '')
		from users u
		join projects p on p.id = @project_id
		left join members m on m.project_id = p.id and m.user_id = u.id
		where u.id = @user_id and (u.is_admin or m.role is not null)`,
		pgx.StrictNamedArgs{"user_id": userID, "project_id": projectID},
	).Scan(&a.Name, &a.Admin, &a.Role)
	if err != nil {
		return Actor{}, fmt.Errorf("read the role of %s in %s: %w", userID, projectID, store.MapError(err))
	}
	return a, nil
}
