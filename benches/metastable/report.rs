//! The figures as a table for each outage.

use callward_replay::report::{Grid, percent};

use crate::figures::Figures;
use crate::world::Outage;

/// One table for each outage.
pub(crate) fn tables(found: &[Figures]) -> String {
    Outage::ALL.map(|outage| table(found, outage)).join("\n")
}

fn table(found: &[Figures], outage: Outage) -> String {
    let headings = [
        "policy",
        "answered during",
        "at last",
        "attempts per call",
        "until the end",
        "worst 10 s",
        "recovered after",
        "neighbours' p99",
        "others' p99",
        "others failed",
    ];
    let mut grid = Grid::new(&headings);
    let of = |happened| {
        let of = move |figures: &&Figures| figures.happened == happened;
        found
            .iter()
            .filter(move |figures| figures.outage == outage.name())
            .filter(of)
    };
    for figures in of(true) {
        let undisturbed = of(false).find(|other| other.policy == figures.policy);
        let p99 = |of: fn(&Figures) -> f64| {
            let (now, before) = (of(figures), undisturbed.map_or(0.0, of));
            if before == 0.0 {
                return "none".to_owned();
            }
            format!("{now:.0} ms ({:+.1} %)", (now / before - 1.0) * 100.0)
        };
        grid.rows.push(vec![
            figures.policy.to_string(),
            percent(figures.answered_during),
            percent(figures.answered_at_last),
            format!("{:.2}", figures.amplification),
            format!("{:.2}", figures.amplification_after),
            format!("{:.2}", figures.amplification_worst),
            match figures.recovered_after_secs {
                Some(secs) => format!("{secs:.0} s"),
                None => "never".to_owned(),
            },
            p99(|figures| figures.neighbours_p99_ms),
            p99(|figures| figures.others_p99_ms),
            percent(figures.others_failed),
        ]);
    }
    format!("{}\n{grid}", outage.name())
}
