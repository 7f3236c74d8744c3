package main

import (
	"bufio"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os/user"
	"strings"

	"github.com/spf13/cobra"

	"entrega/internal/tenant"
)

func userCommand(env environment) *cobra.Command {
	root := &cobra.Command{Use: "user", Short: "Create people and set their passwords"}
	root.AddCommand(userCreateCommand(env), userPasswordCommand(env))
	return root
}

func userCreateCommand(env environment) *cobra.Command {
	var email string
	var admin, fromStdin bool
	cmd := &cobra.Command{
		Use:   "create --email E",
		Short: "Create a person who can log in",
		Long:  "Creates a person. Without --password-stdin a password is made and printed, once.",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			password, made, err := passwordFrom(env, fromStdin)
			if err != nil {
				return err
			}
			return withDatabase(cmd.Context(), env, func(ctx context.Context, _ Config, d *database) error {
				accounts := tenant.NewAccounts(tenant.AccountsOptions{Pool: d.pool})
				u, err := accounts.CreateUser(ctx, cli(), tenant.NewUser{Email: email, Password: password, Admin: admin})
				if err != nil {
					return err
				}
				return tellUser(env.out, u, password, made)
			})
		},
	}
	cmd.Flags().StringVar(&email, "email", "", "e-mail address to log in with")
	cmd.Flags().BoolVar(&admin, "admin", false, "make the person an admin of the installation")
	cmd.Flags().BoolVar(&fromStdin, "password-stdin", false, "read the password from the first line of standard input")
	must(cmd.MarkFlagRequired("email"))
	return cmd
}

func userPasswordCommand(env environment) *cobra.Command {
	var email string
	var fromStdin bool
	cmd := &cobra.Command{
		Use:   "password --email E",
		Short: "Set a person's password and end their sessions",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			password, made, err := passwordFrom(env, fromStdin)
			if err != nil {
				return err
			}
			return withDatabase(cmd.Context(), env, func(ctx context.Context, _ Config, d *database) error {
				u, err := tenant.UserByEmail(ctx, d.pool, email)
				if err != nil {
					return fmt.Errorf("find %s: %w", email, err)
				}
				accounts := tenant.NewAccounts(tenant.AccountsOptions{Pool: d.pool})
				if err := accounts.SetPassword(ctx, cli(), u.ID, password); err != nil {
					return err
				}
				return tellUser(env.out, u, password, made)
			})
		},
	}
	cmd.Flags().StringVar(&email, "email", "", "e-mail address of the person")
	cmd.Flags().BoolVar(&fromStdin, "password-stdin", false, "read the password from the first line of standard input")
	must(cmd.MarkFlagRequired("email"))
	return cmd
}

func passwordFrom(env environment, stdin bool) (password string, made bool, err error) {
	if !stdin {
		return newPassword(), true, nil
	}
	line, err := bufio.NewReader(io.LimitReader(env.in, 4096)).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return "", false, fmt.Errorf("read the password: %w", err)
	}
	if line = strings.TrimRight(line, "\r\n"); line == "" {
		return "", false, errors.New("password: standard input is empty. Give the password on its first line")
	}
	return line, false, nil
}

// newPassword is 130 bits, in letters that are not mistaken for one another.
func newPassword() string { return strings.ToLower(rand.Text()) }

func tellUser(out io.Writer, u tenant.User, password string, made bool) error {
	if !made {
		_, err := fmt.Fprintf(out, "%s can log in.\n", u.Email)
		return err
	}
	_, err := fmt.Fprintf(out, "%s can log in with the password %s\nIt is shown this once.\n", u.Email, password)
	return err
}

// cli is the person at this machine, for the audit log.
func cli() tenant.Actor {
	name := "command line"
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	return tenant.CLI(name)
}

// must is for mistakes of the program that its first run shows.
func must(err error) {
	if err != nil {
		panic(err)
	}
}
