//! One picture for each scenario: how long the slowest calls take, and what struck servers get.

use callward_testkit::chart::{self, Axis, Line, Panel};

use crate::figures::{Figures, SHARES};
use crate::policies::Policy;
use crate::world::{Scenario, Size};

/// Draws a scenario, a panel for each size, and where something happens, another.
pub(crate) fn svg(scenario: Scenario, sizes: &[Size], found: &[Figures]) -> String {
    let mut panels = Vec::new();
    for size in sizes {
        let of_this = |figures: &&Figures| {
            (figures.scenario, figures.servers) == (scenario.name(), size.servers)
        };
        let found: Vec<_> = found.iter().filter(of_this).collect();
        panels.push(tail(scenario, size, &found));
        if scenario.changes() {
            panels.push(struck(scenario, size, &found));
        }
    }
    chart::svg(&panels)
}

/// Latency over the share of calls that do not exceed it.
fn tail(scenario: Scenario, size: &Size, found: &[&Figures]) -> Panel {
    let all = || {
        found
            .iter()
            .flat_map(|figures| figures.tail_ms.iter().flatten())
    };
    let least = all().copied().fold(1e3, f64::min).max(1.0).log10();
    let most = all().copied().fold(10.0, f64::max).log10();
    let shares = [0.5, 0.9, 0.99, 0.999, 0.9999];
    let steps = [20.0, 50.0, 100.0, 200.0, 500.0, 1e3, 2e3, 5e3, 1e4];
    Panel {
        title: format!("{}, {} servers", scenario.name(), size.servers),
        caption: "share of calls, %; answered within, ms".to_owned(),
        x: Axis {
            range: nines(0.5)..nines(0.9999),
            ticks: shares
                .map(|share| (nines(share), format!("{}", share * 100.0)))
                .to_vec(),
        },
        y: Axis {
            range: least..most,
            ticks: steps
                .into_iter()
                .filter(|ms: &f64| (least..most).contains(&ms.log10()))
                .map(|ms: f64| (ms.log10(), ms.to_string()))
                .collect(),
        },
        lines: lines(found, |figures| {
            let points = SHARES.iter().zip(&figures.tail_ms);
            // where the rest is never answered, the line ends
            points
                .filter_map(|(share, ms)| Some((nines(*share), ms.as_ref()?.max(1.0).log10())))
                .collect()
        }),
        ..Panel::default()
    }
}

/// What struck servers get, second by second.
fn struck(scenario: Scenario, size: &Size, found: &[&Figures]) -> Panel {
    let all = found.iter().flat_map(|figures| &figures.struck_by_second);
    let most = all.copied().fold(1.5, f64::max).min(4.0);
    let length = size.length.as_secs();
    let step = usize::try_from(length / 8).map_or(1, |step| step.max(1));
    Panel {
        title: format!(
            "{}, {} servers: calls to them",
            scenario.name(),
            size.servers
        ),
        caption: "seconds; calls as a multiple of an equal share".to_owned(),
        x: Axis {
            range: 0.0..length as f64,
            ticks: (0..=length)
                .step_by(step)
                .map(|second| (second as f64, second.to_string()))
                .collect(),
        },
        y: Axis {
            range: 0.0..most,
            ticks: [0.0, 1.0, 2.0, 3.0, 4.0]
                .into_iter()
                .filter(|times| *times <= most)
                .map(|times| (times, times.to_string()))
                .collect(),
        },
        window: Some(size.turn().as_secs_f64()..length as f64),
        level: Some((1.0, "")),
        lines: lines(found, |figures| {
            // many seconds are more than a line can show
            let wide = (figures.struck_by_second.len() / 50).max(1);
            let by = figures.struck_by_second.chunks(wide).enumerate();
            by.map(|(place, seconds)| {
                let mean = seconds.iter().sum::<f64>() / seconds.len() as f64;
                ((place as f64 + 0.5) * wide as f64, mean)
            })
            .collect()
        }),
    }
}

fn lines(found: &[&Figures], points: impl Fn(&Figures) -> Vec<(f64, f64)>) -> Vec<Line> {
    let line = |figures: &&Figures| Line {
        name: figures.policy.clone(),
        colour: colour(&figures.policy),
        dashed: figures.policy == Policy::Oracle.name() || figures.policy.ends_with(" alone"),
        points: points(figures),
    };
    found.iter().map(line).collect()
}

/// How many nines a share has: 1 for 0.9, 2 for 0.99.
fn nines(share: f64) -> f64 {
    -(1.0 - share).log10()
}

/// Colours that can be told apart by people who see few of them.
fn colour(policy: &str) -> &'static str {
    match policy.trim_end_matches(" alone") {
        "oracle" => "#222222",
        "peak_ewma" => "#d55e00",
        "least_connections" => "#0072b2",
        "round_robin" => "#009e73",
        "weighted" => "#56b4e9",
        "random" => "#cc79a7",
        "affinity" => "#e69f00",
        _ => "#999999",
    }
}
