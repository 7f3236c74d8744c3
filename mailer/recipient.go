package mailer

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"entrega/internal/store"
	"entrega/internal/tenant"
)

const keyBytes = 32

// refOf names an address: HMAC-SHA-256 under the project's key. It is the same for the same address of the same project only.
func (m *Mailer) refOf(ctx context.Context, db store.DB, project, address string) ([]byte, error) {
	key, err := m.projectKey(ctx, db, project)
	if err != nil {
		return nil, err
	}
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(address))
	return mac.Sum(nil), nil
}

// projectKey reads the project's key, and makes it on first use. Of two that make one at once the first to commit wins.
func (m *Mailer) projectKey(ctx context.Context, db store.DB, project string) ([]byte, error) {
	key, err := m.readKey(ctx, db, project)
	if !errors.Is(err, pgx.ErrNoRows) {
		return key, err
	}
	key = make([]byte, keyBytes)
	rand.Read(key) // Never fails: see crypto/rand.
	_, err = db.Exec(ctx, `insert into mail_keys (project_id, sealed) values ($1, $2) on conflict (project_id) do nothing`,
		project, m.box.Seal(key, "mail_keys", project))
	if err != nil {
		return nil, fmt.Errorf("make the key of recipients: %w", err)
	}
	return m.readKey(ctx, db, project)
}

func (m *Mailer) readKey(ctx context.Context, db store.DB, project string) ([]byte, error) {
	var sealed []byte
	if err := db.QueryRow(ctx, `select sealed from mail_keys where project_id = $1`, project).Scan(&sealed); err != nil {
		return nil, fmt.Errorf("read the key of recipients: %w", err)
	}
	key, err := m.box.Open(sealed, "mail_keys", project)
	if err != nil {
		return nil, fmt.Errorf("open the key of recipients: %w", err)
	}
	return key, nil
}

// rememberTx keeps the clear address beside its ref.
func rememberTx(ctx context.Context, tx pgx.Tx, project string, ref []byte, address string) error {
	_, err := tx.Exec(ctx, `
		insert into mail_recipients (project_id, ref, address) values ($1, $2, $3) on conflict (project_id, ref) do nothing`, project, ref, address)
	if err != nil {
		return fmt.Errorf("remember a recipient: %w", err)
	}
	return nil
}

// Erased tells what an erasure took away.
type Erased struct {
	// Notifications had their content emptied, and Captured mails were removed.
	Notifications, Captured int64
}

// EraseRecipient forgets an address of a project: the clear address, and the content of every mail to it. What was attempted
// stays in the ledger under the recipient's ref, and a suppression goes on to hold.
func (m *Mailer) EraseRecipient(ctx context.Context, actor tenant.Actor, project, address string) (Erased, error) {
	if err := actor.RequireIn(project, tenant.PermManageTeam); err != nil {
		return Erased{}, err
	}
	var bad store.InvalidError
	address = checkAddress(&bad, "address", address)
	if err := bad.OrNil(); err != nil {
		return Erased{}, err
	}
	var erased Erased
	err := store.InTx(ctx, m.pool, func(tx pgx.Tx) error {
		ref, err := m.refOf(ctx, tx, project, address)
		if err != nil {
			return err
		}
		tag, err := tx.Exec(ctx, `delete from mail_recipients where project_id = $1 and ref = $2`, project, ref)
		if err != nil {
			return fmt.Errorf("erase a recipient: %w", err)
		}
		if tag.RowsAffected() == 0 {
			return store.Invalid("address", "No mail of this project went to this address.")
		}
		if tag, err = tx.Exec(ctx, `
			update notifications set subject = '', body_text = '', body_html = null, link_sealed = null, erased_at = now()
			where project_id = $1 and recipient_ref = $2`, project, ref); err != nil {
			return fmt.Errorf("erase a recipient's mails: %w", err)
		}
		erased.Notifications = tag.RowsAffected()
		if tag, err = tx.Exec(ctx, `delete from captured_mails where project_id = $1 and ref = $2`, project, ref); err != nil {
			return fmt.Errorf("erase a recipient's captured mails: %w", err)
		}
		erased.Captured = tag.RowsAffected()
		return tenant.Audit(ctx, tx, actor.In(project), "recipient.erase", "recipient", fmt.Sprintf("%x", ref[:8]),
			map[string]any{"notifications": erased.Notifications})
	})
	return erased, err
}
