package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"entrega/internal/store"
	"entrega/internal/tenant"
)

func projectCommand(env environment) *cobra.Command {
	root := &cobra.Command{Use: "project", Short: "Create projects"}
	root.AddCommand(projectCreateCommand(env))
	return root
}

func projectCreateCommand(env environment) *cobra.Command {
	var name, owner string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "create --name N",
		Short: "Create a project with an API key",
		Long:  "Creates a project and an API key that may publish, read and manage. The key is printed this once.",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return withDatabase(cmd.Context(), env, func(ctx context.Context, _ Config, d *database) error {
				n := tenant.NewProject{Name: name}
				if owner != "" {
					u, err := tenant.UserByEmail(ctx, d.pool, owner)
					if errors.Is(err, store.ErrNotFound) {
						return fmt.Errorf("owner: nobody has the address %s. Create them first: entrega user create --email %s", owner, owner)
					}
					if err != nil {
						return err
					}
					n.OwnerID = u.ID
				}
				project, err := tenant.CreateProject(ctx, d.pool, cli(), n)
				if err != nil {
					return err
				}
				_, key, err := tenant.CreateAPIKey(ctx, d.pool, cli().In(project.ID), project.ID,
					tenant.NewAPIKey{Name: "Made with the project", Scopes: tenant.Scopes()})
				if err != nil {
					return err
				}
				if asJSON {
					return json.NewEncoder(env.out).Encode(map[string]string{"projectId": project.ID, "apiKey": key})
				}
				_, err = fmt.Fprintf(env.out, "Project %s is %s.\nIts API key, shown this once: %s\n", project.Name, project.ID, key)
				return err
			})
		},
	}
	cmd.Flags().StringVar(&name, "name", "", "name of the project")
	cmd.Flags().StringVar(&owner, "owner", "", "e-mail address of its first owner, who must exist")
	cmd.Flags().BoolVar(&asJSON, "json", false, `print {"projectId", "apiKey"}`)
	must(cmd.MarkFlagRequired("name"))
	return cmd
}
