//! Spans and metrics of calls and attempts, under OpenTelemetry names.
