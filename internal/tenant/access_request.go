package tenant

import (
	"context"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"entrega/internal/store"
)

// AccessState is what became of an access request.
type AccessState string

// The states of an access request.
const (
	AccessPending  AccessState = "pending"
	AccessApproved AccessState = "approved"
	AccessDeclined AccessState = "declined"
)

const maxMessageRunes = 500

// AccessRequest is a user's wish to join a project.
type AccessRequest struct {
	ID        string
	ProjectID string
	UserID    string
	Email     string
	// Message is the user's own words to the owners, perhaps empty.
	Message   string
	State     AccessState
	CreatedAt time.Time
	// DecidedAt and DecidedBy are of an approval or a refusal, Role of an approval.
	DecidedAt *time.Time
	DecidedBy string
	Role      Role
	// MailState is that of the mail which tells the user: "", sending, sent or failed. RepliedAt is when it was accepted.
	MailState string
	RepliedAt *time.Time
}

const accessRequestFrom = `
	select r.id, r.project_id, r.user_id, u.email, r.message, r.state, r.created_at, r.decided_at,
		coalesce(r.decided_by, '') as decided_by, coalesce(r.role, '') as role,
		coalesce(r.mail_state, '') as mail_state, r.replied_at
	from access_requests r
	join users u on u.id = r.user_id`

// RequestAccess asks the owners of a project to let the acting user in. A user who knows a project's id was given it, so
// names are not searched. One who waits already is a *store.ConflictError with code "already_requested". What else belongs to the
// request, such as the mail to the owners, is done in its transaction.
func RequestAccess(ctx context.Context, pool *pgxpool.Pool, actor Actor, projectID, message string, also ...AlsoTx[AccessRequest]) (AccessRequest, error) {
	if actor.Kind != ActorUser {
		return AccessRequest{}, fmt.Errorf("%w: only a person can ask to join a project", ErrForbidden)
	}
	message = strings.TrimSpace(message)
	if utf8.RuneCountInString(message) > maxMessageRunes {
		return AccessRequest{}, store.Invalid("message", fmt.Sprintf("A message may have %d characters at most.", maxMessageRunes))
	}
	if !utf8.ValidString(message) || strings.ContainsRune(message, 0) {
		return AccessRequest{}, store.Invalid("message", "This message cannot be stored.")
	}
	var request AccessRequest
	err := store.InTx(ctx, pool, func(tx pgx.Tx) error {
		var member bool
		err := tx.QueryRow(ctx, `
			select exists (select from members m where m.project_id = p.id and m.user_id = @user_id)
			from projects p where p.id = @project_id`,
			pgx.StrictNamedArgs{"project_id": projectID, "user_id": actor.ID}).Scan(&member)
		if err != nil {
			return fmt.Errorf("look up project: %w", store.MapError(err))
		}
		if member {
			return &store.ConflictError{Code: "already_member", Sentence: "You are a member of this project already."}
		}
		id := store.NewID("request")
		_, err = tx.Exec(ctx, `
			insert into access_requests (id, project_id, user_id, message) values (@id, @project_id, @user_id, @message)`,
			pgx.StrictNamedArgs{"id": id, "project_id": projectID, "user_id": actor.ID, "message": message})
		if store.IsUnique(err, "access_requests_pending_key") {
			return &store.ConflictError{Code: "already_requested", Sentence: "You have asked already. The owners have not decided yet."}
		}
		if err != nil {
			return fmt.Errorf("request access: %w", err)
		}
		if request, err = lockRequestTx(ctx, tx, projectID, id); err != nil {
			return err
		}
		if err := Audit(ctx, tx, actor.In(projectID), "access.request", "access_request", id, nil); err != nil {
			return err
		}
		return allTx(tx, request, also)
	})
	return request, err
}

// ListAccessRequests pages through the access requests of a project, newest first. An empty state means all.
func ListAccessRequests(ctx context.Context, db store.DB, projectID string, state AccessState, page store.Page) (store.List[AccessRequest], error) {
	k, err := store.KeysetOf[string](page)
	if err != nil {
		return store.List[AccessRequest]{}, err
	}
	order, beyond := "desc", "r.id < @from"
	if k.Backward() {
		order, beyond = "asc", "r.id > @from"
	}
	args := pgx.StrictNamedArgs{"project_id": projectID, "state": state, "fetch": k.Fetch()}
	condition := `r.project_id = @project_id and (@state = '' or r.state = @state)`
	if k.From != nil {
		condition += ` and ` + beyond
		args["from"] = *k.From
	}
	rows, err := db.Query(ctx, accessRequestFrom+` where `+condition+` order by r.id `+order+` limit @fetch`, args)
	if err != nil {
		return store.List[AccessRequest]{}, fmt.Errorf("list access requests: %w", err)
	}
	requests, err := pgx.CollectRows(rows, pgx.RowToStructByName[AccessRequest])
	if err != nil {
		return store.List[AccessRequest]{}, fmt.Errorf("list access requests: %w", err)
	}
	return store.ListOf(k, requests, func(r AccessRequest) string { return r.ID }), nil
}

// ListAccessRequestsOf lists what a user has asked for, newest first, at most the last 50.
func ListAccessRequestsOf(ctx context.Context, db store.DB, userID string) ([]AccessRequest, error) {
	rows, err := db.Query(ctx, accessRequestFrom+` where r.user_id = @user_id order by r.id desc limit 50`,
		pgx.StrictNamedArgs{"user_id": userID})
	if err != nil {
		return nil, fmt.Errorf("list access requests of user %s: %w", userID, err)
	}
	requests, err := pgx.CollectRows(rows, pgx.RowToStructByName[AccessRequest])
	if err != nil {
		return nil, fmt.Errorf("list access requests of user %s: %w", userID, err)
	}
	return requests, nil
}

// ApproveAccess makes the asking user a member. A request that was decided already is a *store.ConflictError with code
// "already_decided". What else belongs to the approval, such as the mail that tells of it, is done in its transaction.
func ApproveAccess(ctx context.Context, pool *pgxpool.Pool, actor Actor, projectID, requestID string, role Role, also ...AlsoTx[AccessRequest]) (AccessRequest, error) {
	if err := checkRole(role); err != nil {
		return AccessRequest{}, err
	}
	return decideAccess(ctx, pool, actor, projectID, requestID, AccessApproved, role, also)
}

// DeclineAccess refuses a request. The user may ask again.
func DeclineAccess(ctx context.Context, pool *pgxpool.Pool, actor Actor, projectID, requestID string) (AccessRequest, error) {
	return decideAccess(ctx, pool, actor, projectID, requestID, AccessDeclined, "", nil)
}

func decideAccess(ctx context.Context, pool *pgxpool.Pool, actor Actor, projectID, requestID string, state AccessState, role Role, also []AlsoTx[AccessRequest]) (AccessRequest, error) {
	if err := actor.RequireIn(projectID, PermManageTeam); err != nil {
		return AccessRequest{}, err
	}
	var request AccessRequest
	err := store.InTx(ctx, pool, func(tx pgx.Tx) error {
		before, err := lockRequestTx(ctx, tx, projectID, requestID)
		if err != nil {
			return err
		}
		if before.State != AccessPending {
			return &store.ConflictError{
				Code:     "already_decided",
				Sentence: fmt.Sprintf("This request was %s already, by %s.", before.State, before.DecidedBy),
			}
		}
		if state == AccessApproved {
			if err := insertMemberTx(ctx, tx, projectID, User{ID: before.UserID}, role); err != nil {
				return err
			}
		}
		if err := settleTx(ctx, tx, actor, projectID, before.UserID, state, role); err != nil {
			return err
		}
		if request, err = lockRequestTx(ctx, tx, projectID, requestID); err != nil {
			return err
		}
		action := map[AccessState]string{AccessApproved: "access.approve", AccessDeclined: "access.decline"}[state]
		if err := Audit(ctx, tx, actor.In(projectID), action, "access_request", requestID,
			map[string]any{"email": request.Email, "userId": request.UserID, "role": role}); err != nil {
			return err
		}
		return allTx(tx, request, also)
	})
	return request, err
}

// settleRequestTx approves what a user has waiting in a project, if anything.
func settleRequestTx(ctx context.Context, tx pgx.Tx, actor Actor, projectID, userID string, role Role) error {
	return settleTx(ctx, tx, actor, projectID, userID, AccessApproved, role)
}

func settleTx(ctx context.Context, tx pgx.Tx, actor Actor, projectID, userID string, state AccessState, role Role) error {
	_, err := tx.Exec(ctx, `
		update access_requests
		set state = @state, role = nullif(@role, ''), decided_at = now(), decided_by = @decided_by
		where project_id = @project_id and user_id = @user_id and state = 'pending'`,
		pgx.StrictNamedArgs{
			"project_id": projectID, "user_id": userID, "state": state, "role": role, "decided_by": actor.Name,
		})
	if err != nil {
		return fmt.Errorf("settle access request: %w", err)
	}
	return nil
}

func lockRequestTx(ctx context.Context, tx pgx.Tx, projectID, requestID string) (AccessRequest, error) {
	rows, err := tx.Query(ctx, accessRequestFrom+` where r.project_id = @project_id and r.id = @id for update of r`,
		pgx.StrictNamedArgs{"project_id": projectID, "id": requestID})
	if err != nil {
		return AccessRequest{}, fmt.Errorf("read access request: %w", err)
	}
	request, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[AccessRequest])
	if err != nil {
		return AccessRequest{}, fmt.Errorf("read access request %s: %w", requestID, store.MapError(err))
	}
	return request, nil
}
