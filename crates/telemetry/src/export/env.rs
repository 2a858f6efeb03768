//! The standard environment variables that the SDK does not read itself.

use std::time::Duration;

use super::config::{InvalidOtlp, OtlpConfig, parse_url};

/// Reads everything, with this endpoint if there is one. `None` if there is no endpoint or
/// everything is turned off.
pub(super) fn read(
    endpoint: Option<&str>,
    get: impl Fn(&str) -> Option<String>,
) -> Result<Option<OtlpConfig>, InvalidOtlp> {
    let get = non_empty(get);
    if let Some(endpoint) = endpoint {
        return settings(&get)?.with_base("endpoint", endpoint).map(Some);
    }
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
fn settings(get: impl Fn(&str) -> Option<String>) -> Result<OtlpConfig, InvalidOtlp> {
    for signal in ["", "TRACES_", "METRICS_"] {
        let name = format!("OTEL_EXPORTER_OTLP_{signal}PROTOCOL");
        if let Some(protocol) = get(&name).filter(|protocol| protocol != "http/protobuf") {
            let expected = "expected \"http/protobuf\", the only supported protocol";
            return Err(InvalidOtlp::new(&name, &protocol, expected));
        }
    }
    let number = |name| {
        let Some(text) = get(name) else {
            return Ok(None);
        };
        let number = text.trim().parse().ok().filter(|number| *number > 0);
        let expected = "expected a whole number above zero";
        number
            .map(Some)
            .ok_or_else(|| InvalidOtlp::new(name, &text, expected))
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
        *time = number(name)?.map_or(*time, |millis: usize| Duration::from_millis(millis as u64));
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
    let share = match sampler.strip_prefix("parentbased_").unwrap_or(&sampler) {
        "always_on" => 1.0,
        "always_off" => 0.0,
        "traceidratio" => {
            let name = "OTEL_TRACES_SAMPLER_ARG";
            let text = get(name).unwrap_or_else(|| "1".to_owned());
            let share = text.trim().parse().ok();
            let share = share.filter(|share| (0.0..=1.0).contains(share));
            let expected = "expected a share from 0.0 to 1.0";
            share.ok_or_else(|| InvalidOtlp::new(name, &text, expected))?
        }
        _ => {
            let expected =
                "expected always_on, always_off or traceidratio, with or without parentbased_";
            return Err(InvalidOtlp::new("OTEL_TRACES_SAMPLER", &sampler, expected));
        }
    };
    Ok(Some(share))
}

#[cfg(test)]
mod tests {
    use super::*;

    type Pairs<'a> = &'a [(&'a str, &'a str)];

    /// Of two values of a name, the first counts.
    fn of(pairs: Pairs<'_>) -> impl Fn(&str) -> Option<String> {
        move |name| {
            let pair = pairs.iter().find(|(key, _)| *key == name)?;
            Some(pair.1.to_owned())
        }
    }

    const BASE: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";

    #[test]
    fn each_signal_goes_where_the_variables_say() {
        let c = (BASE, "http://c:4318/base/");
        let (traces, metrics) = (
            "http://c:4318/base/v1/traces",
            "http://c:4318/base/v1/metrics",
        );
        let own = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "https://t/in");
        let rows: [(Pairs<'_>, Option<[Option<&str>; 2]>); 6] = [
            (&[], None),
            (&[(BASE, " ")], None),
            (&[c, ("OTEL_SDK_DISABLED", "True")], None),
            (&[c], Some([Some(traces), Some(metrics)])),
            (
                &[c, ("OTEL_TRACES_EXPORTER", "none")],
                Some([None, Some(metrics)]),
            ),
            // used unchanged
            (&[c, own], Some([Some("https://t/in"), Some(metrics)])),
        ];
        for (pairs, expected) in rows {
            let config = read(None, of(pairs)).unwrap();
            let urls = config.as_ref().map(|c| [c.traces_url(), c.metrics_url()]);
            assert_eq!(urls, expected, "{pairs:?}");
        }
        // an endpoint of the program overrides all of them
        let off = [c, own, ("OTEL_SDK_DISABLED", "True")];
        let config = read(Some("http://d"), of(&off)).unwrap().unwrap();
        assert_eq!(config.traces_url(), Some("http://d/v1/traces"));
    }

    #[test]
    fn sizes_and_times_are_read() {
        let sizes = |pairs| {
            let config = settings(of(pairs)).unwrap();
            let times = [config.interval, config.metrics_interval, config.timeout];
            (
                config.queue,
                config.batch,
                times.map(|time| time.as_millis()),
            )
        };
        assert_eq!(sizes(&[]), (2048, 512, [5_000, 60_000, 10_000]));
        let set = [
            ("OTEL_BSP_MAX_QUEUE_SIZE", "9"),
            ("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "8"),
            ("OTEL_BSP_SCHEDULE_DELAY", "7"),
            ("OTEL_METRIC_EXPORT_INTERVAL", "6"),
            ("OTEL_EXPORTER_OTLP_TIMEOUT", "5"),
        ];
        assert_eq!(sizes(&set), (9, 8, [7, 6, 5]));
    }

    #[test]
    fn an_invalid_value_is_refused_with_its_name() {
        let url = "the URL of a collector";
        for (name, value, want) in [
            (BASE, "c:4318", url),
            (BASE, "ftp://c", url),
            ("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", "x", url),
            ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc", "http/protobuf"),
            ("OTEL_BSP_MAX_QUEUE_SIZE", "0", "above zero"),
            ("OTEL_BSP_SCHEDULE_DELAY", "5s", "above zero"),
        ] {
            let pairs = [(name, value), (BASE, "http://c")];
            let text = read(None, of(&pairs)).unwrap_err().to_string();
            assert!(text.starts_with(name), "{text}");
            assert!(text.contains(want) && text.contains(value), "{text}");
        }
    }

    #[test]
    fn a_sampler_is_read_as_a_share() {
        let name = "OTEL_TRACES_SAMPLER";
        for (sampler, arg, expected) in [
            ("", "0.1", Ok(None)),
            ("always_on", "", Ok(Some(1.0))),
            ("parentbased_always_off", "", Ok(Some(0.0))),
            ("traceidratio", "0.01", Ok(Some(0.01))),
            ("parentbased_traceidratio", "", Ok(Some(1.0))),
            ("traceidratio", "NaN", Err("OTEL_TRACES_SAMPLER_ARG")),
            ("xray", "", Err(name)),
        ] {
            let found = share(of(&[(name, sampler), ("OTEL_TRACES_SAMPLER_ARG", arg)]));
            let found = found.as_ref().map_err(|error| &*error.setting);
            assert_eq!(found, expected.as_ref().map_err(|name| *name), "{sampler}");
        }
    }
}
