package main

import (
	"context"
	"net"
	"net/url"
	"slices"

	"entrega/internal/egress"
	"entrega/internal/tenant"
	"entrega/views"
)

// mailLinks makes the links of confirmation mails: the token is the account's, the address the panel's.
type mailLinks struct {
	accounts *tenant.Accounts
	public   *url.URL
}

// ConfirmationLink ends a sign-up.
func (l mailLinks) ConfirmationLink(ctx context.Context, userID string) (string, error) {
	token, err := l.accounts.ConfirmationLink(ctx, userID)
	if err != nil {
		return "", err
	}
	return l.public.String() + views.ConfirmURL(token), nil
}

// ChangeEmailLink moves a user to another address.
func (l mailLinks) ChangeEmailLink(ctx context.Context, userID, email string) (string, error) {
	token, err := l.accounts.ChangeEmailLink(ctx, userID, email)
	if err != nil {
		return "", err
	}
	return l.public.String() + views.ConfirmAddressURL(token), nil
}

// newMailDoor is the guard of the installation's own mail: the operator named its relay, so that one may be called wherever it is.
// Relays that projects name go through the common door.
func newMailDoor(c Config, l net.Listener, d *database) (*egress.Door, error) {
	c.EgressAllow = append(slices.Clone(c.EgressAllow), mailTarget(c.Mail)...)
	return newDoor(c, l, d)
}
