package main

import (
	"fmt"
	"math"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"entrega/jobs"
)

// forecastRows bounds the lines of the table; a longer forecast is put together by several minutes.
const forecastRows = 60

func policiesForecastCommand(env environment) *cobra.Command {
	var profile, rate, outage string
	load := jobs.Load{}
	cmd := &cobra.Command{
		Use:   "forecast [KIND]",
		Short: "Say what an outage leads to: retries per minute, workers needed, time to drain",
		Long: "Computes, from the policy alone, the worst case of an outage in which every attempt fails while tasks go on coming at a steady rate. " +
			"KIND is order.notification when it is left out.",
		Example: "  entrega policies forecast --rate 10/s\n  entrega policies forecast webhook.deliver --profile compact --rate 600/min --outage 2h --workers 200",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			set, err := jobs.LoadPolicies(env.getenv("ENTREGA_POLICIES"))
			if err != nil {
				return err
			}
			kind := "order.notification"
			if len(args) == 1 {
				kind = args[0]
			}
			policy, ok := set.For(kind, profile)
			if !ok {
				return fmt.Errorf("no policy for %s in profile %s; `entrega policies show` lists all", kind, profile)
			}
			if load.PerSecond, err = jobs.ParseRate(rate); err != nil {
				return fmt.Errorf("rate: %w", err)
			}
			if load.Outage, err = jobs.ParseOutage(outage); err != nil {
				return err
			}
			if load.Workers < 0 || load.Took < 0 {
				return fmt.Errorf("workers and took must not be negative")
			}
			return printForecast(env, policy, load)
		},
	}
	cmd.Flags().StringVar(&profile, "profile", jobs.DefaultProfile, "profile of the policy")
	cmd.Flags().StringVar(&rate, "rate", "1/s", "how many tasks come: 10/s, 600/min, 5/h")
	cmd.Flags().StringVar(&outage, "outage", "10m", "how long every attempt fails")
	cmd.Flags().IntVar(&load.Workers, "workers", 0, "how many attempts run at once; 0 means as many as are needed")
	cmd.Flags().DurationVar(&load.Took, "took", time.Second, "how long an attempt lasts once the outage is over")
	return cmd
}

func printForecast(env environment, p jobs.Policy, l jobs.Load) error {
	f := p.Forecast(l)
	fmt.Fprintf(env.out, "%s, profile %s: %g tasks a second, and every attempt fails for %s.\n\n", p.Kind, p.Profile, l.PerSecond, l.Outage)
	step := max(1, (len(f.Retries)+forecastRows-1)/forecastRows)
	w := tabwriter.NewWriter(env.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "FROM\tFIRST TRIES/MIN\tRETRIES/MIN\t")
	for m := 0; m < len(f.Retries); m += step {
		first, retries := most(f.FirstTries[m:min(m+step, len(f.Retries))]), most(f.Retries[m:min(m+step, len(f.Retries))])
		bar := ""
		if f.Peak > 0 {
			bar = strings.Repeat("#", int(math.Round(40*(first+retries)/f.Peak)))
		}
		fmt.Fprintf(w, "+%s\t%.0f\t%.0f\t%s\n", time.Duration(m)*time.Minute, first, retries, bar)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	drained := f.Drained.String() + " after the outage"
	if f.Never {
		drained = "never, with these workers: more comes than they do"
	}
	_, err := fmt.Fprintf(env.out, "\nPeak            %.0f attempts a minute, from +%s on\nWorkers needed  %d, when each attempt lasts the %s that the policy allows\nWaiting         %.0f tasks when the outage ends\nGiven up        %.0f tasks in it\nDrained         %s\n",
		f.Peak, f.PeakAt, f.WorkersNeeded, p.Timeout.Total, f.Waiting, f.GivenUp, drained)
	return err
}

func most(values []float64) float64 {
	highest := 0.0
	for _, v := range values {
		highest = max(highest, v)
	}
	return highest
}
