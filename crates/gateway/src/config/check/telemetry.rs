//! What is told of calls, and to whom.

use std::time::Duration;

use callward::core::BaggageFilter;
use callward::core::redact::Redactor;
use callward::telemetry::export::OtlpConfig;

use super::super::telemetry::Telemetry;
use super::Faults;

impl Faults<'_, '_> {
    pub(super) fn telemetry(&mut self, written: &Telemetry) -> Telemetry {
        let at = |key| ["telemetry", key];
        if let Some(endpoint) = &written.otlp_endpoint {
            let checked = OtlpConfig::new(endpoint).map_err(|fault| fault.reason());
            self.ok(checked, &at("otlp_endpoint"));
        }
        for (name, value) in &written.otlp_headers {
            let checked = OtlpConfig::new("http://localhost")
                .and_then(|config| config.with_header(name, value))
                .map_err(|fault| fault.reason());
            self.ok(checked, &["telemetry", "otlp_headers", name]);
        }
        for (key, size) in [
            ("otlp_queue", written.otlp_queue),
            ("otlp_batch", written.otlp_batch),
        ] {
            self.expect(
                size.is_none_or(|size| (1..=OtlpConfig::MAX_QUEUE).contains(&size)),
                &at(key),
                "expected a number of spans from 1 to 1048576",
            );
        }
        for (key, time) in [
            ("otlp_timeout", written.otlp_timeout),
            ("otlp_interval", written.otlp_interval),
            ("otlp_metrics_interval", written.otlp_metrics_interval),
        ] {
            self.expect(
                time.is_none_or(|time| time >= LEAST_TIME),
                &at(key),
                "expected at least \"10ms\"",
            );
        }
        self.expect(
            written
                .sampling
                .is_none_or(|share| (0.0..=1.0).contains(&share)),
            &at("sampling"),
            "expected a share from 0.0 to 1.0: traces per call",
        );
        self.expect(
            written.service_name.as_deref() != Some(""),
            &at("service_name"),
            "expected a name",
        );
        for (number, key) in (1_usize..).zip(&written.baggage) {
            let number = number.to_string();
            self.ok(
                BaggageFilter::new([key]),
                &["telemetry", "baggage", &number],
            );
        }
        for (number, name) in (1_usize..).zip(&written.redact) {
            let number = number.to_string();
            self.expect(
                name.chars().any(char::is_alphanumeric),
                &["telemetry", "redact", &number],
                "expected a name with a letter or digit: this one names nothing",
            );
        }
        self.expect(
            written.max_recorded_bytes.0 >= Redactor::LEAST_MAX_BYTES as u64,
            &at("max_recorded_bytes"),
            "expected at least 64 bytes: less would hold nothing but marks",
        );
        written.clone()
    }
}

/// Less would keep a processor busy for nothing.
const LEAST_TIME: Duration = Duration::from_millis(10);
