package tenant

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"entrega/internal/store"
)

// Member is a user in a project.
type Member struct {
	UserID    string
	Email     string
	Role      Role
	CreatedAt time.Time
}

// ListMembers lists the members of a project: owners, then on-call staff, then viewers, each by address.
func ListMembers(ctx context.Context, db store.DB, projectID string) ([]Member, error) {
	rows, err := db.Query(ctx, `
		select m.user_id, u.email, m.role, m.created_at
		from members m
		join users u on u.id = m.user_id
		where m.project_id = @project_id
		order by array_position(@roles::text[], m.role), u.email`,
		pgx.StrictNamedArgs{"project_id": projectID, "roles": Roles()})
	if err != nil {
		return nil, fmt.Errorf("list members: %w", err)
	}
	members, err := pgx.CollectRows(rows, pgx.RowToStructByName[Member])
	if err != nil {
		return nil, fmt.Errorf("list members: %w", err)
	}
	return members, nil
}

// AddMember gives the user of an address a role in a project. An access request that the user has waiting is approved by it.
func AddMember(ctx context.Context, pool *pgxpool.Pool, actor Actor, projectID, email string, role Role) (Member, error) {
	if err := actor.RequireIn(projectID, PermManageTeam); err != nil {
		return Member{}, err
	}
	if err := checkRole(role); err != nil {
		return Member{}, err
	}
	var member Member
	err := store.InTx(ctx, pool, func(tx pgx.Tx) error {
		user, err := UserByEmail(ctx, tx, email)
		if errors.Is(err, store.ErrNotFound) || err == nil && user.EmailConfirmedAt == nil {
			return store.Invalid("email", "Nobody with this e-mail address has an account here yet.")
		}
		if err != nil {
			return err
		}
		if err := insertMemberTx(ctx, tx, projectID, user, role); err != nil {
			return err
		}
		if err := settleRequestTx(ctx, tx, actor, projectID, user.ID, role); err != nil {
			return err
		}
		if member, err = memberTx(ctx, tx, projectID, user.ID); err != nil {
			return err
		}
		return Audit(ctx, tx, actor.In(projectID), "member.add", "user", user.ID, map[string]any{"email": user.Email, "role": role})
	})
	return member, err
}

// ChangeRole gives a member another role. A project keeps an owner: see RemoveMember.
func ChangeRole(ctx context.Context, pool *pgxpool.Pool, actor Actor, projectID, userID string, role Role) (Member, error) {
	if err := actor.RequireIn(projectID, PermManageTeam); err != nil {
		return Member{}, err
	}
	if err := checkRole(role); err != nil {
		return Member{}, err
	}
	var member Member
	err := store.InTx(ctx, pool, func(tx pgx.Tx) error {
		if err := keepOwnerTx(ctx, tx, projectID, userID, role); err != nil {
			return err
		}
		before, err := memberTx(ctx, tx, projectID, userID)
		if err != nil {
			return err
		}
		_, err = tx.Exec(ctx, `update members set role = @role where project_id = @project_id and user_id = @user_id`,
			pgx.StrictNamedArgs{"project_id": projectID, "user_id": userID, "role": role})
		if err != nil {
			return fmt.Errorf("change role: %w", err)
		}
		member = before
		member.Role = role
		if before.Role == role {
			return nil
		}
		return Audit(ctx, tx, actor.In(projectID), "member.change_role", "user", userID,
			map[string]any{"email": before.Email, "before": before.Role, "after": role})
	})
	return member, err
}

// RemoveMember takes a user out of a project; members may take out themselves. The last owner stays, which is a
// *store.ConflictError with code "last_owner".
func RemoveMember(ctx context.Context, pool *pgxpool.Pool, actor Actor, projectID, userID string) error {
	needed := PermManageTeam
	if actor.Kind == ActorUser && actor.ID == userID {
		needed = PermSee
	}
	if err := actor.RequireIn(projectID, needed); err != nil {
		return err
	}
	return store.InTx(ctx, pool, func(tx pgx.Tx) error {
		if err := keepOwnerTx(ctx, tx, projectID, userID, ""); err != nil {
			return err
		}
		member, err := memberTx(ctx, tx, projectID, userID)
		if err != nil {
			return err
		}
		_, err = tx.Exec(ctx, `delete from members where project_id = @project_id and user_id = @user_id`,
			pgx.StrictNamedArgs{"project_id": projectID, "user_id": userID})
		if err != nil {
			return fmt.Errorf("remove member: %w", err)
		}
		return Audit(ctx, tx, actor.In(projectID), "member.remove", "user", userID,
			map[string]any{"email": member.Email, "role": member.Role})
	})
}

func checkRole(role Role) error {
	if !role.Valid() {
		return store.Invalid("role", "Choose owner, on-call or viewer.")
	}
	return nil
}

// keepOwnerTx refuses a change after which the project would have no owner. It locks the owners, so that two who leave at
// once see one another.
func keepOwnerTx(ctx context.Context, tx pgx.Tx, projectID, userID string, role Role) error {
	rows, err := tx.Query(ctx, `
		select user_id from members where project_id = @project_id and role = 'owner' order by user_id for update`,
		pgx.StrictNamedArgs{"project_id": projectID})
	if err != nil {
		return fmt.Errorf("lock owners: %w", err)
	}
	owners, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return fmt.Errorf("lock owners: %w", err)
	}
	if role != RoleOwner && slices.Equal(owners, []string{userID}) {
		return &store.ConflictError{
			Code:     "last_owner",
			Sentence: "This is the last owner. Make someone else an owner first.",
		}
	}
	return nil
}

func insertMemberTx(ctx context.Context, tx pgx.Tx, projectID string, user User, role Role) error {
	_, err := tx.Exec(ctx, `insert into members (project_id, user_id, role) values (@project_id, @user_id, @role)`,
		pgx.StrictNamedArgs{"project_id": projectID, "user_id": user.ID, "role": role})
	if store.IsUnique(err, "members_pkey") {
		return alreadyMember()
	}
	if err != nil {
		return fmt.Errorf("add member: %w", err)
	}
	return nil
}

func alreadyMember() error {
	return &store.ConflictError{Code: "already_member", Sentence: "This person is a member of the project already."}
}

func memberTx(ctx context.Context, tx pgx.Tx, projectID, userID string) (Member, error) {
	rows, err := tx.Query(ctx, `
		select m.user_id, u.email, m.role, m.created_at
		from members m
		join users u on u.id = m.user_id
		where m.project_id = @project_id and m.user_id = @user_id
		for update of m`,
		pgx.StrictNamedArgs{"project_id": projectID, "user_id": userID})
	if err != nil {
		return Member{}, fmt.Errorf("read member: %w", err)
	}
	member, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[Member])
	if err != nil {
		return Member{}, fmt.Errorf("read member: %w", store.MapError(err))
	}
	return member, nil
}
