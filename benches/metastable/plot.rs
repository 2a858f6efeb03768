//! Goodput over time, one panel for each outage.

use callward_testkit::chart::{self, Axis, Line, Panel};

use crate::figures::Figures;
use crate::policies::Policy;
use crate::world::{Outage, Size};

/// Draws all panels, one under the other.
pub(crate) fn svg(size: &Size, found: &[Figures]) -> String {
    chart::svg(&Outage::ALL.map(|outage| panel(size, outage, found)))
}

fn panel(size: &Size, outage: Outage, found: &[Figures]) -> Panel {
    let shown = |figures: &&Figures| figures.happened && figures.outage == outage.name();
    let found = || found.iter().filter(shown);
    let struck = (0..size.sets).filter(|set| outage.strikes(*set)).count();
    // answers a second, if all calls were answered
    let offered = size.load * size.capacity() * struck as f64;
    let most = found().flat_map(|figures| &figures.goodput).max();
    let highest = f64::from(*most.unwrap_or(&1)).max(offered) * 1.05;
    let window = size.window();
    let quarter = |part: u32| (highest * f64::from(part) / 4.0).floor();
    Panel {
        title: outage.name().to_owned(),
        caption: "seconds; calls answered in each, of the sets that are struck".to_owned(),
        x: Axis {
            range: 0.0..size.length().as_secs_f64(),
            ticks: (0..=size.length().as_secs())
                .step_by(20)
                .map(|second| (second as f64, second.to_string()))
                .collect(),
        },
        y: Axis {
            range: 0.0..highest,
            ticks: (0..=4)
                .map(|part| (quarter(part), quarter(part).to_string()))
                .collect(),
        },
        window: Some(window.start.as_secs_f64()..window.end.as_secs_f64()),
        level: Some((offered, "offered")),
        lines: found().map(line).collect(),
    }
}

fn line(figures: &Figures) -> Line {
    let goodput = figures.goodput.iter().enumerate();
    Line {
        name: figures.policy.to_owned(),
        colour: colour(figures.policy),
        dashed: false,
        points: goodput
            .map(|(second, goodput)| (second as f64 + 0.5, f64::from(*goodput)))
            .collect(),
    }
}

/// Colours that can be told apart by people who see few of them.
fn colour(policy: &str) -> &'static str {
    if policy == Policy::Ours.name() {
        "#d55e00"
    } else if policy == Policy::Naive.name() {
        "#0072b2"
    } else {
        "#999999"
    }
}
