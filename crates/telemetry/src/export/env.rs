//! The standard environment variables.

use std::time::Duration;

use super::config::{InvalidOtlp, OtlpConfig, parse_url};

/// Reads everything; nothing if no endpoint is named or all is turned off.
pub(super) fn read(
    get: impl Fn(&str) -> Option<String>,
) -> Result<Option<OtlpConfig>, InvalidOtlp> {
    let get = |name: &str| get(name).filter(|value| !value.trim().is_empty());
    if get("OTEL_SDK_DISABLED").is_some_and(|value| value.eq_ignore_ascii_case("true")) {
        return Ok(None);
    }
    let mut config = OtlpConfig::nowhere();
    if let Some(endpoint) = get("OTEL_EXPORTER_OTLP_ENDPOINT") {
        config = config.with_endpoint(&endpoint).map_err(|fault| {
            InvalidOtlp::new("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint, fault_of(&fault))
        })?;
    }
    for (signal, url) in [
        ("TRACES", &mut config.traces),
        ("METRICS", &mut config.metrics),
    ] {
        let name = format!("OTEL_EXPORTER_OTLP_{signal}_ENDPOINT");
        if let Some(endpoint) = get(&name) {
            *url = Some(parse_url(&name, &endpoint)?);
        }
        if get(&format!("OTEL_{signal}_EXPORTER")).is_some_and(|value| value == "none") {
            *url = None;
        }
    }
    if config.traces.is_none() && config.metrics.is_none() {
        return Ok(None);
    }
    let urls = (config.traces, config.metrics);
    let settings = settings(get)?;
    Ok(Some(OtlpConfig {
        traces: urls.0,
        metrics: urls.1,
        ..settings
    }))
}

fn fault_of(fault: &InvalidOtlp) -> String {
    let reason = fault.reason();
    reason
        .split(", found")
        .next()
        .unwrap_or_default()
        .to_owned()
}

/// Reads everything but the endpoints.
pub(super) fn settings(get: impl Fn(&str) -> Option<String>) -> Result<OtlpConfig, InvalidOtlp> {
    let get = |name: &str| get(name).filter(|value| !value.trim().is_empty());
    for name in [
        "OTEL_EXPORTER_OTLP_PROTOCOL",
        "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL",
        "OTEL_EXPORTER_OTLP_METRICS_PROTOCOL",
    ] {
        if let Some(protocol) = get(name).filter(|protocol| protocol != "http/protobuf") {
            let expected = "expected \"http/protobuf\", the one protocol that is spoken";
            return Err(InvalidOtlp::new(name, protocol, expected));
        }
    }
    let number = |name: &str, default: usize| match get(name) {
        Some(text) => text
            .trim()
            .parse::<usize>()
            .ok()
            .filter(|number| *number > 0)
            .ok_or_else(|| InvalidOtlp::new(name, text, "expected a whole number above zero")),
        None => Ok(default),
    };
    let millis = |name: &str, default: Duration| {
        let default = usize::try_from(default.as_millis()).unwrap_or(usize::MAX);
        let millis = number(name, default)?;
        Ok(Duration::from_millis(millis as u64))
    };
    Ok(OtlpConfig::nowhere()
        .with_timeout(millis(
            "OTEL_EXPORTER_OTLP_TIMEOUT",
            OtlpConfig::DEFAULT_TIMEOUT,
        )?)
        .with_queue(number(
            "OTEL_BSP_MAX_QUEUE_SIZE",
            OtlpConfig::DEFAULT_QUEUE,
        )?)
        .with_batch(number(
            "OTEL_BSP_MAX_EXPORT_BATCH_SIZE",
            OtlpConfig::DEFAULT_BATCH,
        )?)
        .with_interval(millis(
            "OTEL_BSP_SCHEDULE_DELAY",
            OtlpConfig::DEFAULT_INTERVAL,
        )?)
        .with_metrics_interval(millis(
            "OTEL_METRIC_EXPORT_INTERVAL",
            OtlpConfig::DEFAULT_METRICS_INTERVAL,
        )?))
}

/// Says whether the SDK's exporter may compress spans in a way that we do not: it reads these variables
/// itself.
pub(super) fn compresses_otherwise(get: impl Fn(&str) -> Option<String>) -> bool {
    let names = [
        "OTEL_EXPORTER_OTLP_TRACES_COMPRESSION",
        "OTEL_EXPORTER_OTLP_COMPRESSION",
    ];
    let set = names.into_iter().filter_map(get);
    set.into_iter().any(|value| {
        !matches!(
            value.trim().to_ascii_lowercase().as_str(),
            "" | "gzip" | "none"
        )
    })
}

/// Reads which share of the calls is traced, from `OTEL_TRACES_SAMPLER` and
/// `OTEL_TRACES_SAMPLER_ARG`; none if they do not say.
///
/// # Errors
///
/// [`InvalidOtlp`] if they name a sampler that is not there, or a share that is none.
pub fn share_from_env() -> Result<Option<f64>, InvalidOtlp> {
    share(|name| std::env::var(name).ok())
}

fn share(get: impl Fn(&str) -> Option<String>) -> Result<Option<f64>, InvalidOtlp> {
    let get = |name: &str| get(name).filter(|value| !value.trim().is_empty());
    let Some(sampler) = get("OTEL_TRACES_SAMPLER") else {
        return Ok(None);
    };
    match sampler.strip_prefix("parentbased_").unwrap_or(&sampler) {
        "always_on" => Ok(Some(1.0)),
        "always_off" => Ok(Some(0.0)),
        "traceidratio" => {
            let Some(text) = get("OTEL_TRACES_SAMPLER_ARG") else {
                return Ok(Some(1.0));
            };
            let share = text.trim().parse::<f64>().ok();
            share
                .filter(|share| (0.0..=1.0).contains(share))
                .map(Some)
                .ok_or_else(|| {
                    let expected = "expected a share from 0.0 to 1.0";
                    InvalidOtlp::new("OTEL_TRACES_SAMPLER_ARG", text, expected)
                })
        }
        _ => Err(InvalidOtlp::new(
            "OTEL_TRACES_SAMPLER",
            sampler,
            "expected always_on, always_off or traceidratio, with or without parentbased_",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(pairs: &[(&str, &str)]) -> impl Fn(&str) -> Option<String> {
        let pairs: Vec<_> = pairs
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect();
        move |name| {
            let pair = pairs.iter().find(|(key, _)| key == name)?;
            Some(pair.1.clone())
        }
    }

    fn urls(pairs: &[(&str, &str)]) -> Option<(Option<String>, Option<String>)> {
        let config = read(of(pairs)).unwrap()?;
        let text = |url: Option<&str>| url.map(ToOwned::to_owned);
        Some((text(config.traces_url()), text(config.metrics_url())))
    }

    #[test]
    fn without_an_endpoint_nothing_is_sent() {
        assert_eq!(urls(&[]), None);
        assert_eq!(urls(&[("OTEL_EXPORTER_OTLP_ENDPOINT", " ")]), None);
        let off = ("OTEL_SDK_DISABLED", "True");
        let endpoint = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://c:4318");
        assert_eq!(urls(&[endpoint, off]), None);
        let (traces, metrics) = urls(&[endpoint, ("OTEL_TRACES_EXPORTER", "none")]).unwrap();
        assert_eq!(
            (traces, metrics.unwrap().as_str()),
            (None, "http://c:4318/v1/metrics")
        );
    }

    #[test]
    fn only_gzip_is_compressed_here() {
        let traces = "OTEL_EXPORTER_OTLP_TRACES_COMPRESSION";
        let all = "OTEL_EXPORTER_OTLP_COMPRESSION";
        for ours in ["", "none", "gzip", " GZIP"] {
            assert!(!compresses_otherwise(of(&[(all, ours)])), "{ours}");
        }
        assert!(!compresses_otherwise(of(&[])));
        assert!(compresses_otherwise(of(&[(all, "zstd")])));
        assert!(compresses_otherwise(of(&[(traces, "zstd"), (all, "gzip")])));
    }

    #[test]
    fn an_endpoint_of_one_signal_is_taken_as_it_is() {
        let (traces, metrics) = urls(&[
            ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://c:4318/base/"),
            ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "https://t/in"),
        ])
        .unwrap();
        assert_eq!(traces.as_deref(), Some("https://t/in"));
        assert_eq!(metrics.as_deref(), Some("http://c:4318/base/v1/metrics"));
    }

    #[test]
    fn sizes_and_times_are_read() {
        let config = settings(of(&[
            ("OTEL_BSP_MAX_QUEUE_SIZE", "9"),
            ("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "8"),
            ("OTEL_BSP_SCHEDULE_DELAY", "7"),
            ("OTEL_METRIC_EXPORT_INTERVAL", "6"),
        ]))
        .unwrap();
        assert_eq!((config.queue, config.batch), (9, 8));
        assert_eq!(config.interval, Duration::from_millis(7));
        assert_eq!(config.metrics_interval, Duration::from_millis(6));
        let default = settings(of(&[])).unwrap();
        assert_eq!((default.queue, default.batch), (2048, 512));
        assert_eq!(default.interval, Duration::from_secs(5));
        assert_eq!(default.metrics_interval, Duration::from_secs(60));
    }

    #[test]
    fn what_makes_no_sense_is_named() {
        for (name, value, want) in [
            (
                "OTEL_EXPORTER_OTLP_ENDPOINT",
                "c:4318",
                "the URL of a collector",
            ),
            (
                "OTEL_EXPORTER_OTLP_ENDPOINT",
                "ftp://c",
                "the URL of a collector",
            ),
            (
                "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT",
                "x",
                "the URL of a collector",
            ),
            ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc", "http/protobuf"),
            ("OTEL_BSP_MAX_QUEUE_SIZE", "0", "above zero"),
            ("OTEL_BSP_SCHEDULE_DELAY", "5s", "above zero"),
        ] {
            let mut pairs = vec![(name, value)];
            if name != "OTEL_EXPORTER_OTLP_ENDPOINT" {
                pairs.push(("OTEL_EXPORTER_OTLP_ENDPOINT", "http://c"));
            }
            let error = read(of(&pairs)).unwrap_err();
            assert_eq!(error.setting(), name);
            let text = error.to_string();
            assert!(text.contains(want) && text.contains(value), "{text}");
        }
    }

    #[test]
    fn a_sampler_is_a_share() {
        let of = |sampler, arg| {
            let pairs = [
                ("OTEL_TRACES_SAMPLER", sampler),
                ("OTEL_TRACES_SAMPLER_ARG", arg),
            ];
            share(of(&pairs)).map_err(|error| error.setting().to_owned())
        };
        assert_eq!(of("", "0.1"), Ok(None));
        assert_eq!(of("always_on", ""), Ok(Some(1.0)));
        assert_eq!(of("parentbased_always_off", ""), Ok(Some(0.0)));
        assert_eq!(of("traceidratio", "0.01"), Ok(Some(0.01)));
        assert_eq!(of("parentbased_traceidratio", ""), Ok(Some(1.0)));
        assert_eq!(
            of("traceidratio", "NaN"),
            Err("OTEL_TRACES_SAMPLER_ARG".into())
        );
        assert_eq!(of("xray", ""), Err("OTEL_TRACES_SAMPLER".into()));
    }
}
