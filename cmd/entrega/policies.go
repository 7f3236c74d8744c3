package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"entrega/jobs"
)

func policiesCommand(env environment) *cobra.Command {
	root := &cobra.Command{Use: "policies", Short: "Check, show, compare and simulate retry policies"}
	root.AddCommand(policiesCheckCommand(env), policiesShowCommand(env), policiesDiffCommand(env), policiesSimulateCommand(env), policiesForecastCommand(env))
	return root
}

func policiesCheckCommand(env environment) *cobra.Command {
	return &cobra.Command{
		Use:   "check [FILE]",
		Short: "Say whether a policies file is right, and where it is not",
		Long:  "Reads FILE, or the one that ENTREGA_POLICIES names, and says for each mistake the file, the line and the mend.",
		Args:  cobra.MaximumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			file := env.getenv("ENTREGA_POLICIES")
			if len(args) == 1 {
				file = args[0]
			}
			set, err := jobs.LoadPolicies(file)
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(env.out, "%d policies, all in order.\n", len(set.All()))
			return err
		},
	}
}

func policiesShowCommand(env environment) *cobra.Command {
	return &cobra.Command{
		Use:   "show [KIND [PROFILE]]",
		Short: "Print the policies in force, as YAML",
		Args:  cobra.MaximumNArgs(2),
		RunE: func(_ *cobra.Command, args []string) error {
			set, err := jobs.LoadPolicies(env.getenv("ENTREGA_POLICIES"))
			if err != nil {
				return err
			}
			shown := 0
			for _, p := range set.All() {
				if len(args) > 0 && p.Kind != args[0] || len(args) > 1 && p.Profile != args[1] {
					continue
				}
				if shown++; shown > 1 {
					fmt.Fprintln(env.out, "---")
				}
				if _, err := fmt.Fprintln(env.out, strings.TrimRight(p.YAML(), "\n")); err != nil {
					return err
				}
			}
			if shown == 0 {
				return fmt.Errorf("no policy for %s; `entrega policies show` lists all", strings.Join(args, " "))
			}
			return nil
		},
	}
}

func policiesDiffCommand(env environment) *cobra.Command {
	return &cobra.Command{
		Use:   "diff FILE",
		Short: "Say what a policies file would change against the shipped policies",
		Args:  cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			shipped, err := jobs.LoadPolicies("")
			if err != nil {
				return err
			}
			changed, err := jobs.LoadPolicies(args[0])
			if err != nil {
				return err
			}
			differences := 0
			for _, after := range changed.All() {
				before, known := shipped.For(after.Kind, after.Profile)
				changes := jobs.Diff(before, after)
				if len(changes) == 0 {
					continue
				}
				differences++
				word := "changed"
				if !known {
					word = "new"
				}
				fmt.Fprintf(env.out, "%s %s, %s:\n", after.Kind, after.Profile, word)
				for _, change := range changes {
					if _, err := fmt.Fprintln(env.out, "  "+change.String()); err != nil {
						return err
					}
				}
			}
			if differences == 0 {
				_, err = fmt.Fprintln(env.out, "Nothing changes.")
			}
			return err
		},
	}
}
