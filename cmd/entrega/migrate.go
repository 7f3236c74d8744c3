package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
)

func migrateCommand(env environment) *cobra.Command {
	return &cobra.Command{
		Use:   "migrate",
		Short: "Bring the database to this version's schema",
		Long:  "Brings the database to this version's schema. It may run as often as you like, beside nodes of this version; serve does it by itself at its start. Stop nodes of an older version first, unless the changelog says that they may go on.",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return withDatabase(cmd.Context(), env, func(ctx context.Context, _ Config, d *database) error {
				var version int
				if err := d.pool.QueryRow(ctx, `select version from public.entrega_schema_version`).Scan(&version); err != nil {
					return fmt.Errorf("read the schema's version: %w", err)
				}
				_, err := fmt.Fprintf(env.out, "The schema is at version %d.\n", version)
				return err
			})
		},
	}
}
