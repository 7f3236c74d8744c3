package mailer

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"entrega/internal/store"
)

const (
	// recipientCap is how many mails of a project one recipient gets in a clock hour; the next wait for the next hour.
	recipientCap = 30
	// ownerCap is how many notices an owner gets in a clock hour; the next are dropped on purpose.
	ownerCap = 5
	// scopeAll counts mails of every kind.
	scopeAll = ""
)

// hourOf is the clock hour of an instant, in UTC: 13:59:59.999 is of 13:00, 14:00:00 of 14:00.
func hourOf(t time.Time) time.Time { return t.UTC().Truncate(time.Hour) }

// takeSlot takes one of the recipient's slots of this hour. A mail that has one keeps it, whenever it is tried again. When none is
// free it answers when the next hour begins.
func (s *Sender) takeSlot(ctx context.Context, n *Notification) (until time.Time, err error) {
	if !n.slotAt.IsZero() {
		return time.Time{}, nil
	}
	hour := hourOf(s.now())
	err = store.InTx(ctx, s.pool, func(tx pgx.Tx) error {
		free, err := takeTx(ctx, tx, n, scopeAll, hour, recipientCap)
		if err != nil {
			return err
		}
		if free {
			_, err = tx.Exec(ctx, `update notifications set slot_at = $2 where id = $1`, n.ID, hour)
		} else {
			until = hour.Add(time.Hour)
			_, err = tx.Exec(ctx, `update notifications set held_until = $2 where id = $1`, n.ID, until)
		}
		if err != nil {
			return fmt.Errorf("note a mail's slot: %w", err)
		}
		return nil
	})
	return until, err
}

// takeOwnerSlot is takeSlot for the hour's notices to an owner.
func (s *Sender) takeOwnerSlot(ctx context.Context, n *Notification) (free bool, err error) {
	if !n.ownerSlotAt.IsZero() {
		return true, nil
	}
	hour := hourOf(s.now())
	err = store.InTx(ctx, s.pool, func(tx pgx.Tx) error {
		if free, err = takeTx(ctx, tx, n, OwnerNotify.Name, hour, ownerCap); err != nil || !free {
			return err
		}
		if _, err := tx.Exec(ctx, `update notifications set owner_slot_at = $2 where id = $1`, n.ID, hour); err != nil {
			return fmt.Errorf("note a notice's slot: %w", err)
		}
		return nil
	})
	return free, err
}

// takeTx counts up to the cap in one statement, so that of two nodes only one gets the last slot.
func takeTx(ctx context.Context, tx pgx.Tx, n *Notification, scope string, hour time.Time, most int) (free bool, err error) {
	var used int
	err = tx.QueryRow(ctx, `
		insert into mail_slots as s (project_id, ref, scope, hour, used) values ($1, $2, $3, $4, 1)
		on conflict (project_id, ref, scope, hour) do update set used = s.used + 1 where s.used < $5
		returning used`, n.ProjectID, n.ref, scope, hour, most).Scan(&used)
	if errors.Is(err, pgx.ErrNoRows) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("take a slot of a recipient: %w", err)
	}
	return true, nil
}

// keepSlots is how long counted hours stay.
const keepSlots = 48 * time.Hour

// SweepSlots forgets the counts of hours that are over.
func SweepSlots(ctx context.Context, db store.DB, now time.Time) error {
	if _, err := db.Exec(ctx, `delete from mail_slots where hour < $1`, now.Add(-keepSlots)); err != nil {
		return fmt.Errorf("forget counted hours: %w", err)
	}
	return nil
}
