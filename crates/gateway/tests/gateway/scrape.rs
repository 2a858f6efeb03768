//! Reading `/metrics`.

use std::collections::{BTreeMap, BTreeSet};

use callward::telemetry::names::metric::{Kind, Metric};

use crate::support::{Gateway, within};

/// Names and values.
pub(crate) type Labels = Vec<(String, String)>;

/// What a scrape says, read as strictly as Prometheus does.
#[derive(Debug, Default)]
pub(crate) struct Scrape {
    pub(crate) kinds: BTreeMap<String, String>,
    /// Name, labels, value.
    pub(crate) samples: Vec<(String, Labels, f64)>,
}

impl Scrape {
    pub(crate) async fn of(gateway: &Gateway) -> Self {
        let answer = crate::support::http().get(gateway.at("/metrics")).send();
        let answer = within("the scrape", answer).await.unwrap();
        assert_eq!(
            answer.headers()["content-type"],
            "text/plain; version=0.0.4"
        );
        let text = within("the text", answer.text()).await.unwrap();
        Self::read(&text)
    }

    fn read(text: &str) -> Self {
        let mut scrape = Self::default();
        let (mut helped, mut seen) = (BTreeSet::new(), BTreeSet::new());
        for line in text.lines() {
            if let Some(help) = line.strip_prefix("# HELP ") {
                let (name, help) = help.split_once(' ').unwrap();
                assert!(!help.is_empty() && helped.insert(name.to_owned()), "{line}");
            } else if let Some(kind) = line.strip_prefix("# TYPE ") {
                let (name, kind) = kind.split_once(' ').unwrap();
                assert!(helped.contains(name), "no help: {line}");
                let before = scrape.kinds.insert(name.to_owned(), kind.to_owned());
                assert_eq!(before, None, "{line}");
            } else {
                let (series, value) = line.rsplit_once(' ').unwrap();
                assert!(seen.insert(series.to_owned()), "twice: {line}");
                let (name, labels) = match series.split_once('{') {
                    Some((name, labels)) => (name, read_labels(labels)),
                    None => (series, Vec::new()),
                };
                assert!(scrape.family(name).is_some(), "no type: {line}");
                let value = value.parse().unwrap();
                scrape.samples.push((name.to_owned(), labels, value));
            }
        }
        scrape
    }

    /// Returns the family of a sample, and its kind.
    pub(crate) fn family<'a>(&'a self, sample: &'a str) -> Option<(&'a str, &'a str)> {
        let suffixes = ["", "_bucket", "_sum", "_count"];
        let names = suffixes.iter().filter_map(|end| sample.strip_suffix(end));
        let mut known = names.filter_map(|name| Some((name, self.kinds.get(name)?.as_str())));
        known.next()
    }

    /// Returns the sum of all series of a counter or gauge.
    pub(crate) fn value(&self, metric: Metric) -> f64 {
        let name = family(metric);
        let values = self.samples.iter().filter(|(one, ..)| *one == name);
        values.map(|(.., value)| value).sum()
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
