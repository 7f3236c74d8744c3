package egress

import (
	"net/http"
	"os"
	"syscall"
)

func settings() {
	os.Getenv("A")      // want `boundary/environment: only cmd/entrega reads the environment, and os.Getenv does; add a field to its Config and take the value as a parameter`
	os.LookupEnv("A")   // want `boundary/environment: .* os.LookupEnv does`
	os.Environ()        // want `boundary/environment: .* os.Environ does`
	os.ExpandEnv("$A")  // want `boundary/environment: .* os.ExpandEnv does`
	syscall.Getenv("A") // want `boundary/environment: .* syscall.Getenv does`
	get := os.Getenv    // want `boundary/environment`
	_ = get("A")
	_ = http.Transport{
		Proxy: http.ProxyFromEnvironment, // want `boundary/environment: .* http.ProxyFromEnvironment does`
	}

	os.Expand("$A", func(string) string { return "" })
	os.Hostname()
}
