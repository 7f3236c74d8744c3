package main

import (
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"entrega/jobs"
)

func evidenceCommand(env environment) *cobra.Command {
	root := &cobra.Command{Use: "evidence", Short: "Verify and export the ledger of attempts"}
	root.AddCommand(evidenceVerifyCommand(env), evidenceExportCommand(env))
	return root
}

func evidenceVerifyCommand(env environment) *cobra.Command {
	var project string
	cmd := &cobra.Command{
		Use:   "verify",
		Short: "Recompute all chains and waits, and report the first difference",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return withDatabase(cmd.Context(), env, func(ctx context.Context, _ Config, d *database) error {
				v, err := jobs.VerifyLedger(ctx, d.pool, project)
				if err != nil {
					return fmt.Errorf("the ledger does not hold: %w (%d tasks before it do)", err, v.Tasks)
				}
				_, err = fmt.Fprintf(env.out, "All chains hold: %d tasks, %d records.\n", v.Tasks, v.Records)
				return err
			})
		},
	}
	cmd.Flags().StringVar(&project, "project", "", "only this project's tasks")
	return cmd
}

func evidenceExportCommand(env environment) *cobra.Command {
	var f jobs.EvidenceFilter
	var format string
	cmd := &cobra.Command{
		Use:     "export",
		Short:   "Write attempt records as JSON Lines or CSV",
		Example: "  entrega evidence export --order SO-1\n  entrega evidence export --project project_… --event event_… --format csv",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if f == (jobs.EvidenceFilter{}) {
				return errors.New("say what to export: --order, --event, --task or --project")
			}
			write, flush, err := recordWriter(env.out, format)
			if err != nil {
				return err
			}
			return withDatabase(cmd.Context(), env, func(ctx context.Context, _ Config, d *database) error {
				if err := jobs.EachRecord(ctx, d.pool, f, write); err != nil {
					return err
				}
				return flush()
			})
		},
	}
	cmd.Flags().StringVar(&f.OrderID, "order", "", "records about this order")
	cmd.Flags().StringVar(&f.EventID, "event", "", "records about this event")
	cmd.Flags().Int64Var(&f.TaskID, "task", 0, "records of this task")
	cmd.Flags().StringVar(&f.ProjectID, "project", "", "records of this project")
	cmd.Flags().StringVar(&format, "format", "jsonl", "jsonl or csv")
	return cmd
}

// recordWriter gives the writer of one record and what ends the output.
func recordWriter(out io.Writer, format string) (write func(jobs.Record) error, flush func() error, err error) {
	switch format {
	case "jsonl":
		enc := json.NewEncoder(out)
		enc.SetEscapeHTML(false)
		return func(r jobs.Record) error { return enc.Encode(r) }, func() error { return nil }, nil
	case "csv":
		w := csv.NewWriter(out)
		if err := w.Write(jobs.RecordColumns()); err != nil {
			return nil, nil, err
		}
		return func(r jobs.Record) error { return w.Write(r.CSV()) }, func() error { w.Flush(); return w.Error() }, nil
	default:
		return nil, nil, fmt.Errorf("format: is %q; use jsonl or csv", format)
	}
}
