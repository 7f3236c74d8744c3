package tenant

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"entrega/internal/store"
)

// SignUp notes that somebody wants an account for an address, and returns its user. The caller gives the same answer in any
// case, and sends a confirmation (ConfirmationLink) unless EmailConfirmedAt is set: a stranger must not learn who has an
// account here. address is the client's IP address; too many sign-ups from it are a *ThrottledError.
//
// A password is chosen only behind the confirmation, so nobody can prepare an account for an address that is not theirs
// and wait for its owner to confirm it. What else belongs to the sign-up, such as the mail with the link, is done in its
// transaction, also for an address that signed up before.
func (a *Accounts) SignUp(ctx context.Context, email, address string, also ...AlsoTx[User]) (User, error) {
	email, problem := NormalizeEmail(email)
	if problem != "" {
		return User{}, store.Invalid("email", problem)
	}
	if _, err := countTries(ctx, a.pool, a.now(), signUpKey(address)); err != nil {
		return User{}, err
	}
	var user User
	err := store.InTx(ctx, a.pool, func(tx pgx.Tx) error {
		id := store.NewID("user")
		_, err := tx.Exec(ctx, `insert into users (id, email) values (@id, @email) on conflict (lower(email)) do nothing`,
			pgx.StrictNamedArgs{"id": id, "email": email})
		if err != nil {
			return fmt.Errorf("sign up: %w", err)
		}
		if user, err = UserByEmail(ctx, tx, email); err != nil {
			return err
		}
		if user.ID == id {
			if err := Audit(ctx, tx, ActorOf(user), "user.sign_up", "user", user.ID, map[string]any{"email": email}); err != nil {
				return err
			}
		}
		return allTx(tx, user, also)
	})
	return user, err
}

// ConfirmationLink returns the token of a new link that confirms a user's address; earlier ones keep working until one is
// used. It is made when the mail is sent, not before, so that it lasts its full time. A user who is confirmed already is a
// *store.ConflictError with code "email_confirmed".
func (a *Accounts) ConfirmationLink(ctx context.Context, userID string) (token string, err error) {
	user, err := UserByID(ctx, a.pool, userID)
	if err != nil {
		return "", err
	}
	if user.EmailConfirmedAt != nil {
		return "", &store.ConflictError{Code: "email_confirmed", Sentence: "This e-mail address is confirmed already."}
	}
	return a.newLink(ctx, a.pool, LinkConfirmEmail, userID, LinkDetail{})
}

// ConfirmEmail uses a confirmation link: the address is the user's, who can log in with this password from now on.
func (a *Accounts) ConfirmEmail(ctx context.Context, token, password string) (User, error) {
	link, err := a.Link(ctx, LinkConfirmEmail, token)
	if err != nil {
		return User{}, err
	}
	user, err := UserByID(ctx, a.pool, link.UserID)
	if err != nil {
		return User{}, err
	}
	if err := checkNewPassword(password, user.Email); err != nil {
		return User{}, err
	}
	hash, err := a.passwords.Hash(ctx, password)
	if err != nil {
		return User{}, err
	}
	err = store.InTx(ctx, a.pool, func(tx pgx.Tx) error {
		if _, err := a.useLinkTx(ctx, tx, LinkConfirmEmail, token); err != nil {
			return err
		}
		if err := a.voidLinksTx(ctx, tx, LinkConfirmEmail, user.ID); err != nil {
			return err
		}
		rows, err := tx.Query(ctx, `
			update users set password_hash = @hash, email_confirmed_at = @now
			where id = @id and email_confirmed_at is null
			returning `+userColumns,
			pgx.StrictNamedArgs{"id": user.ID, "hash": hash, "now": a.now()})
		if user, err = collectUser(rows, err); errors.Is(err, store.ErrNotFound) {
			return linkSpent() // An admin has set a password meanwhile.
		}
		if err != nil {
			return fmt.Errorf("confirm e-mail address: %w", err)
		}
		return Audit(ctx, tx, ActorOf(user), "user.confirm_email", "user", user.ID, nil)
	})
	return user, err
}

// ChangeEmailLink returns the token of a link, to be sent to the new address, that moves the user to it.
func (a *Accounts) ChangeEmailLink(ctx context.Context, userID, email string) (token string, err error) {
	email, problem := NormalizeEmail(email)
	if problem != "" {
		return "", store.Invalid("email", problem)
	}
	return a.newLink(ctx, a.pool, LinkChangeEmail, userID, LinkDetail{Email: email})
}

// ChangeEmail uses such a link. An address that somebody else has by now is a *store.ConflictError with code
// "email_taken"; the link is then not used up.
func (a *Accounts) ChangeEmail(ctx context.Context, token string) (User, error) {
	var user User
	err := store.InTx(ctx, a.pool, func(tx pgx.Tx) error {
		link, err := a.useLinkTx(ctx, tx, LinkChangeEmail, token)
		if err != nil {
			return err
		}
		before, err := UserByID(ctx, tx, link.UserID)
		if err != nil {
			return err
		}
		rows, err := tx.Query(ctx, `
			update users set email = @email, email_confirmed_at = @now where id = @id returning `+userColumns,
			pgx.StrictNamedArgs{"id": before.ID, "email": link.Detail.Email, "now": a.now()})
		user, err = collectUser(rows, err)
		if store.IsUnique(err, "users_email_key") {
			return emailTaken()
		}
		if err != nil {
			return fmt.Errorf("change e-mail address: %w", err)
		}
		if err := a.voidLinksTx(ctx, tx, LinkChangeEmail, user.ID); err != nil {
			return err
		}
		return Audit(ctx, tx, ActorOf(user), "user.change_email", "user", user.ID,
			map[string]any{"from": before.Email, "to": user.Email})
	})
	return user, err
}
