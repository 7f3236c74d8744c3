package mailer

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"entrega/internal/store"
)

// maxPerOrder bounds the notifications of one order that are read at once.
const maxPerOrder = 1000

// NotificationsOfOrder lists what was sent about an order of a project, in the order it was asked for.
func (m *Mailer) NotificationsOfOrder(ctx context.Context, db store.DB, project, orderID string) ([]*Notification, error) {
	rows, err := db.Query(ctx, notificationFrom+` where n.project_id = $1 and n.order_id = $2 order by n.id limit $3`, project, orderID, maxPerOrder)
	if err != nil {
		return nil, fmt.Errorf("list the notifications of an order: %w", err)
	}
	return collect(rows)
}

// collect reads rows of notificationFrom.
func collect(rows pgx.Rows) ([]*Notification, error) {
	found, err := pgx.CollectRows(rows, pgx.RowToStructByName[notificationRow])
	if err != nil {
		return nil, fmt.Errorf("read notifications: %w", err)
	}
	list := make([]*Notification, len(found))
	for i, row := range found {
		list[i] = row.notification()
	}
	return list, nil
}

// Ref names the recipient in the ledger.
func (n *Notification) Ref() []byte { return n.ref }
