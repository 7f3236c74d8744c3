package otelriver
