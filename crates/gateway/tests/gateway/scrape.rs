//! Reading `/metrics`.

use std::collections::BTreeMap;

use callward::telemetry::names::metric::{Kind, Metric};

use crate::support::Gateway;

/// Names and values.
pub(crate) type Labels = Vec<(String, String)>;

/// What a scrape says.
#[derive(Debug, Default)]
pub(crate) struct Scrape {
    pub(crate) kinds: BTreeMap<String, String>,
    /// Name, labels, value.
    pub(crate) samples: Vec<(String, Labels, f64)>,
}

impl Scrape {
    pub(crate) async fn of(gateway: &Gateway) -> Self {
        let (status, text) = gateway.get("/metrics").await;
        assert_eq!(status, 200, "{text}");
        let mut scrape = Self::default();
        for line in text.lines() {
            if let Some(kind) = line.strip_prefix("# TYPE ") {
                let (name, kind) = kind.split_once(' ').unwrap();
                scrape.kinds.insert(name.to_owned(), kind.to_owned());
            } else if !line.starts_with('#') {
                let (series, value) = line.rsplit_once(' ').unwrap();
                let (name, labels) = match series.split_once('{') {
                    Some((name, labels)) => (name, read_labels(labels)),
                    None => (series, Vec::new()),
                };
                let value = value.parse().unwrap();
                scrape.samples.push((name.to_owned(), labels, value));
            }
        }
        scrape
    }

    /// Returns the family of a sample.
    pub(crate) fn family<'a>(&self, sample: &'a str) -> Option<&'a str> {
        let suffixes = ["", "_bucket", "_sum", "_count"];
        let mut names = suffixes.iter().filter_map(|end| sample.strip_suffix(end));
        names.find(|name| self.kinds.contains_key(*name))
    }

    /// Returns the sum of all series of a counter or gauge.
    pub(crate) fn value(&self, metric: Metric) -> f64 {
        self.value_with(metric, &[])
    }

    /// Returns the sum of the series with these labels.
    pub(crate) fn value_with(&self, metric: Metric, labels: &[(&str, &str)]) -> f64 {
        self.sum(&family(metric), labels)
    }

    /// Returns the sum of the samples of this name with these labels.
    pub(crate) fn sum(&self, name: &str, labels: &[(&str, &str)]) -> f64 {
        let has = |all: &Labels, one: &(&str, &str)| {
            all.iter().any(|(name, value)| (&**name, &**value) == *one)
        };
        let samples = self.samples.iter();
        let found = samples
            .filter(|(one, all, _)| *one == name && labels.iter().all(|label| has(all, label)));
        found.map(|(.., value)| value).sum()
    }

    pub(crate) fn has(&self, metric: Metric) -> bool {
        let kind = self.kinds.get(&family(metric));
        if let Some(kind) = kind {
            assert_eq!(kind, metric.kind.as_str(), "{metric:?}");
        }
        kind.is_some()
    }
}

fn read_labels(labels: &str) -> Vec<(String, String)> {
    let mut rest = labels.strip_suffix('}').unwrap();
    let mut read = Vec::new();
    while !rest.is_empty() {
        let (name, value) = rest.split_once("=\"").unwrap();
        let (value, after) = value.split_once('"').unwrap();
        read.push((name.to_owned(), value.to_owned()));
        rest = after.strip_prefix(',').unwrap_or(after);
    }
    read
}

/// Returns the name under which Prometheus knows a metric.
pub(crate) fn family(metric: Metric) -> String {
    let unit = match metric.unit {
        "s" => "_seconds",
        "By" => "_bytes",
        _ => "",
    };
    let total = match metric.kind {
        Kind::Counter => "_total",
        _ => "",
    };
    format!("{}{unit}{total}", metric.name.replace('.', "_"))
}
