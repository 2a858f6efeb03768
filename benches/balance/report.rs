//! The figures as tables in Markdown, one for each scenario and size.

use std::fmt::Write;

use tollgate_replay::report::percent;

use crate::figures::Figures;
use crate::policies::Policy;
use crate::world::Scenario;

/// One table for each scenario and size.
pub(crate) fn tables(found: &[Figures], sizes: &[usize]) -> String {
    let mut tables = String::new();
    for scenario in Scenario::ALL {
        for servers in sizes {
            // writing to a string cannot fail
            let _ = table(&mut tables, found, scenario, *servers);
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
        let to_oracle = oracle.map_or(0.0, |oracle| figures.p99_ms / oracle.p99_ms);
        write!(
            tables,
            "| {} | {:.0} | {:.0} | {:.0} | {to_oracle:.2} | {:.2} | {:.2} | {} |",
            figures.policy,
            figures.p50_ms,
            figures.p99_ms,
            figures.p999_ms,
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
