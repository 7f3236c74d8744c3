package main

import (
	"fmt"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"entrega/jobs"
)

func policiesSimulateCommand(env environment) *cobra.Command {
	var profile string
	var taskID int64
	var answers []string
	var repeat int
	cmd := &cobra.Command{
		Use:     "simulate KIND",
		Short:   "Play made-up answers through a policy and print each decision",
		Example: "  entrega policies simulate webhook.deliver --answer http.500 --answer timeout --answer http.200\n  entrega policies simulate webhook.deliver --profile compact --answer http.503 --repeat 9",
		Args:    cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			set, err := jobs.LoadPolicies(env.getenv("ENTREGA_POLICIES"))
			if err != nil {
				return err
			}
			policy, ok := set.For(args[0], profile)
			if !ok {
				return fmt.Errorf("no policy for %s in profile %s; `entrega policies show` lists all", args[0], profile)
			}
			if repeat < 1 || repeat > 1000 {
				return fmt.Errorf("repeat: is %d; use 1 to 1000", repeat)
			}
			var history []jobs.Answer
			for range repeat {
				for _, class := range answers {
					history = append(history, jobs.Answer{Class: class})
				}
			}
			start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
			w := tabwriter.NewWriter(env.out, 0, 0, 2, ' ', 0)
			fmt.Fprintln(w, "ATTEMPT\tSTARTS\tANSWER\tDECISION\tREASON\tWAIT\tBASE")
			for _, s := range jobs.Simulate(policy, taskID, history, start) {
				fmt.Fprintf(w, "%d\t+%s\t%s\t%s\t%s\t%s\t%s\n", s.Attempt, s.StartedAt.Sub(start), s.Class, s.Decision.Verdict, s.Decision.Reason, s.Decision.Wait, s.Decision.BaseWait)
			}
			return w.Flush()
		},
	}
	cmd.Flags().StringVar(&profile, "profile", jobs.DefaultProfile, "profile of the policy")
	cmd.Flags().Int64Var(&taskID, "task", 1, "task id, which the jitter depends on")
	cmd.Flags().StringArrayVar(&answers, "answer", []string{"http.500"}, "how an attempt ends: http.503, timeout, success, blocked, …; give it once for each attempt")
	cmd.Flags().IntVar(&repeat, "repeat", 1, "how often the answers come round")
	return cmd
}
