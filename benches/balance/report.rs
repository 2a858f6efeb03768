//! The figures as tables in Markdown, one for each scenario and size.

use std::fmt::Write;

use callward_replay::report::percent;

use crate::figures::Figures;
use crate::policies::Policy;
use crate::world::{Scenario, Size};

/// One table for each scenario and size.
pub(crate) fn tables(found: &[Figures], scenarios: &[Scenario], sizes: &[Size]) -> String {
    let mut tables = String::new();
    for scenario in scenarios {
        for size in sizes {
            // writing to a string cannot fail
            let _ = table(&mut tables, found, *scenario, size.servers);
        }
    }
    tables
}

fn table(
    tables: &mut String,
    found: &[Figures],
    scenario: Scenario,
    servers: usize,
) -> std::fmt::Result {
    let of_this =
        |figures: &&Figures| (figures.scenario, figures.servers) == (scenario.name(), servers);
    let oracle = found
        .iter()
        .filter(of_this)
        .find(|figures| figures.policy == Policy::Oracle.name());
    writeln!(tables, "### {}, {servers} servers\n", scenario.name())?;
    let changes = scenario.changes();
    let struck = if changes { " struck get |" } else { "" };
    let dashes = if changes { " ---: |" } else { "" };
    writeln!(
        tables,
        "| policy | p50 ms | p99 ms | p99.9 ms | p99 to oracle | calls, most | busy, most | failed |{struck}\n\
         | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |{dashes}"
    )?;
    for figures in found.iter().filter(of_this) {
        let to_oracle = figures.p99_ms.zip(oracle.and_then(|oracle| oracle.p99_ms));
        write!(
            tables,
            "| {} | {} | {} | {} | {} | {:.2} | {:.2} | {} |",
            figures.policy,
            or_never(figures.p50_ms, 0),
            or_never(figures.p99_ms, 0),
            or_never(figures.p999_ms, 0),
            or_never(to_oracle.map(|(own, oracle)| own / oracle), 2),
            figures.most_calls,
            figures.most_busy,
            percent(figures.failed),
        )?;
        if changes {
            write!(tables, " {:.2} |", figures.struck)?;
        }
        writeln!(tables)?;
    }
    writeln!(tables)
}

fn or_never(number: Option<f64>, decimals: usize) -> String {
    number.map_or_else(
        || "never".to_owned(),
        |number| format!("{number:.decimals$}"),
    )
}
