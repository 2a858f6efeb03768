//! The standard environment variables that the SDK does not read itself.

use std::time::Duration;

use super::config::{InvalidOtlp, OtlpConfig, parse_url};

/// Reads everything; `None` if no endpoint is named or everything is turned off.
pub(super) fn read(
    get: impl Fn(&str) -> Option<String>,
) -> Result<Option<OtlpConfig>, InvalidOtlp> {
    let get = non_empty(get);
    if get("OTEL_SDK_DISABLED").is_some_and(|value| value.eq_ignore_ascii_case("true")) {
        return Ok(None);
    }
    let mut config = settings(&get)?;
    let name = "OTEL_EXPORTER_OTLP_ENDPOINT";
    if let Some(endpoint) = get(name) {
        config = config.with_base(name, &endpoint)?;
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
    let sends = config.traces.is_some() || config.metrics.is_some();
    Ok(sends.then_some(config))
}

/// Reads everything but the endpoints.
pub(super) fn settings(get: impl Fn(&str) -> Option<String>) -> Result<OtlpConfig, InvalidOtlp> {
    let get = non_empty(get);
    for name in [
        "OTEL_EXPORTER_OTLP_PROTOCOL",
        "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL",
        "OTEL_EXPORTER_OTLP_METRICS_PROTOCOL",
    ] {
        if let Some(protocol) = get(name).filter(|protocol| protocol != "http/protobuf") {
            let expected = "expected \"http/protobuf\", the only supported protocol";
            return Err(InvalidOtlp::new(name, protocol, expected));
        }
    }
    let number = |name| match get(name) {
        Some(text) => match text.trim().parse::<usize>() {
            Ok(number) if number > 0 => Ok(Some(number)),
            _ => {
                let expected = "expected a whole number above zero";
                Err(InvalidOtlp::new(name, text, expected))
            }
        },
        None => Ok(None),
    };
    let mut config = OtlpConfig::nowhere();
    for (name, size) in [
        ("OTEL_BSP_MAX_QUEUE_SIZE", &mut config.queue),
        ("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", &mut config.batch),
    ] {
        *size = number(name)?.unwrap_or(*size);
    }
    for (name, time) in [
        ("OTEL_EXPORTER_OTLP_TIMEOUT", &mut config.timeout),
        ("OTEL_BSP_SCHEDULE_DELAY", &mut config.interval),
        ("OTEL_METRIC_EXPORT_INTERVAL", &mut config.metrics_interval),
    ] {
        *time = number(name)?.map_or(*time, |millis| Duration::from_millis(millis as u64));
    }
    Ok(config)
}

/// An empty variable counts as unset.
fn non_empty(get: impl Fn(&str) -> Option<String>) -> impl Fn(&str) -> Option<String> {
    move |name| get(name).filter(|value| !value.trim().is_empty())
}

/// Reads the share of calls to trace from `OTEL_TRACES_SAMPLER` and `OTEL_TRACES_SAMPLER_ARG`;
/// `None` if they are not set.
///
/// # Errors
///
/// [`InvalidOtlp`] if they name an unknown sampler or an invalid share.
pub fn share_from_env() -> Result<Option<f64>, InvalidOtlp> {
    share(|name| std::env::var(name).ok())
}

fn share(get: impl Fn(&str) -> Option<String>) -> Result<Option<f64>, InvalidOtlp> {
    let get = non_empty(get);
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
            match text.trim().parse::<f64>() {
                Ok(share) if (0.0..=1.0).contains(&share) => Ok(Some(share)),
                _ => Err(InvalidOtlp::new(
                    "OTEL_TRACES_SAMPLER_ARG",
                    text,
                    "expected a share from 0.0 to 1.0",
                )),
            }
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
    fn nothing_is_sent_without_an_endpoint() {
        assert_eq!(urls(&[]), None);
        assert_eq!(urls(&[("OTEL_EXPORTER_OTLP_ENDPOINT", " ")]), None);
        let off = ("OTEL_SDK_DISABLED", "True");
        let endpoint = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://c:4318");
        assert_eq!(urls(&[endpoint, off]), None);
        let (traces, metrics) = urls(&[endpoint, ("OTEL_TRACES_EXPORTER", "none")]).unwrap();
        assert_eq!(traces, None);
        assert_eq!(metrics.as_deref(), Some("http://c:4318/v1/metrics"));
    }

    #[test]
    fn an_endpoint_of_one_signal_is_used_unchanged() {
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
    fn an_invalid_value_is_refused_with_its_name() {
        let (base, url) = ("OTEL_EXPORTER_OTLP_ENDPOINT", "the URL of a collector");
        for (name, value, want) in [
            (base, "c:4318", url),
            (base, "ftp://c", url),
            ("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", "x", url),
            ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc", "http/protobuf"),
            ("OTEL_BSP_MAX_QUEUE_SIZE", "0", "above zero"),
            ("OTEL_BSP_SCHEDULE_DELAY", "5s", "above zero"),
        ] {
            // of two values of a name, the first counts
            let pairs = [(name, value), (base, "http://c")];
            let error = read(of(&pairs)).unwrap_err();
            let text = error.to_string();
            assert!(text.starts_with(name), "{text}");
            assert!(text.contains(want) && text.contains(value), "{text}");
        }
    }

    #[test]
    fn a_sampler_is_read_as_a_share() {
        let of = |sampler, arg| {
            let pairs = [
                ("OTEL_TRACES_SAMPLER", sampler),
                ("OTEL_TRACES_SAMPLER_ARG", arg),
            ];
            share(of(&pairs)).map_err(|error| error.to_string())
        };
        assert_eq!(of("", "0.1"), Ok(None));
        assert_eq!(of("always_on", ""), Ok(Some(1.0)));
        assert_eq!(of("parentbased_always_off", ""), Ok(Some(0.0)));
        assert_eq!(of("traceidratio", "0.01"), Ok(Some(0.01)));
        assert_eq!(of("parentbased_traceidratio", ""), Ok(Some(1.0)));
        for (sampler, arg, name) in [
            ("traceidratio", "NaN", "OTEL_TRACES_SAMPLER_ARG: "),
            ("xray", "", "OTEL_TRACES_SAMPLER: "),
        ] {
            let error = of(sampler, arg).unwrap_err();
            assert!(error.starts_with(name), "{error}");
        }
    }
}
