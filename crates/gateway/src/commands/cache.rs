//! `callward cache`: what the cache of a running gateway did, and emptying it.

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::time::Duration;

use crate::api;
use crate::args::{Cache, CacheCommand, PurgeArgs};
use crate::config::show_size;
use crate::error::{AppError, Outcome};
use crate::output::{Cell, Screen, Table, took};
use crate::state_dir::StateDir;
use crate::view::{CacheView, CountsView, Purge, Purged, UnsettledView};

pub(crate) async fn run(args: Cache, state: Option<&StateDir>, screen: &Screen) -> Outcome {
    let (remote, _) = api::gateway(&args.gateway, state).await?;
    match args.command {
        None => {
            let view = remote.cache().await?;
            if args.json {
                screen.json(&view);
            } else {
                show(&view, screen);
            }
        }
        Some(CacheCommand::Purge(what)) => {
            let purged = remote.purge(&purge(what)?).await?;
            if args.json {
                screen.json(&purged);
            } else {
                screen.out(forgotten(&purged));
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn show(view: &CacheView, screen: &Screen) {
    let mut table = Table::new(&[
        "tool", "hits", "joined", "stale", "misses", "hit rate", "bypassed", "writes", "stored",
        "refused", "saved",
    ]);
    for tool in &view.tools {
        let name = match &tool.name {
            Some(name) => name.clone(),
            None => format!("{}.{} (gone)", tool.set, tool.tool),
        };
        table.row(row(name, &tool.counts));
    }
    let total = &view.total;
    table.row(row("all".into(), &total.counts));
    screen.table(&table);
    screen.out("");
    screen.out(format_args!(
        "kept now: {} entries, {}; evicted to make room: {}",
        total.entries,
        show_size(total.bytes),
        total.evicted
    ));
    for state in &view.unsettled {
        screen.out(unsettled(state));
    }
    for tool in &view.tools {
        if let Some(evidence) = &tool.evidence {
            let name = tool.name.as_deref().unwrap_or(&tool.tool);
            screen.out(format_args!("{name}: {evidence}"));
        }
    }
}

fn unsettled(of: &UnsettledView) -> String {
    let time = |millis: f64| {
        Duration::try_from_secs_f64(millis / 1000.0).map_or_else(|_| "-".into(), took)
    };
    let UnsettledView {
        state,
        set,
        tool,
        reason,
        ..
    } = of;
    let (age, left) = (time(of.age_ms), time(of.left_ms));
    format!(
        "unsettled for {age}, and for {left} more: {state}; a call of {set}.{tool} may still land ({reason})"
    )
}

fn row(name: String, counts: &CountsView) -> Vec<Cell> {
    let refused = counts.refusals.values().sum();
    let rescued = counts.rescued();
    let stale = counts.stale + rescued;
    let served_for_failures = BTreeMap::from([("rescued".to_owned(), rescued)]);
    vec![
        Cell::plain(name),
        Cell::plain(counts.hits),
        Cell::plain(counts.joined),
        Cell::warn(with_reasons(stale, &served_for_failures), stale > 0),
        Cell::plain(counts.misses),
        Cell::share(counts.hit_rate),
        Cell::plain(with_reasons(counts.bypassed, &counts.bypasses)),
        Cell::plain(counts.invalidations),
        Cell::plain(counts.stored),
        Cell::plain(with_reasons(refused, &counts.refusals)),
        Cell::plain(saved(counts.saved_ms)),
    ]
}

/// A number, and what it is made of.
fn with_reasons(count: u64, reasons: &BTreeMap<String, u64>) -> String {
    let met: Vec<String> = reasons
        .iter()
        .filter(|(_, count)| **count > 0)
        .map(|(reason, count)| format!("{reason} {count}"))
        .collect();
    if met.is_empty() {
        return count.to_string();
    }
    format!("{count} ({})", met.join(", "))
}

fn saved(millis: f64) -> String {
    if millis == 0.0 {
        return "0".into();
    }
    Duration::try_from_secs_f64(millis / 1000.0).map_or_else(|_| "-".into(), took)
}

/// The command line lets exactly one through.
fn purge(args: PurgeArgs) -> Result<Purge, AppError> {
    let named = [
        args.tool.map(Purge::Tool),
        args.server.map(Purge::Server),
        args.tag.map(Purge::Tag),
        args.principal.map(Purge::Principal),
        args.all.then_some(Purge::All(true)),
    ];
    named.into_iter().flatten().next().ok_or_else(|| {
        AppError::Usage("name what to forget: --all, --tool, --server, --tag or --principal".into())
    })
}

fn forgotten(purged: &Purged) -> String {
    match (&purged.purged, &purged.set) {
        (Purge::All(_), _) => "forgotten: everything".into(),
        (Purge::Principal(name), _) => format!("forgotten: what was kept for {name:?} alone"),
        (Purge::Server(id), Some(set)) => {
            format!("forgotten: what was read from replica set `{set}`, which `{id}` is in")
        }
        (Purge::Server(id), None) => format!("forgotten: what was read from `{id}`"),
        (Purge::Tag(tag), _) => {
            format!(
                "forgotten: results of tools with tag {tag:?}, and what was read from scopes of that name"
            )
        }
        (Purge::Tool(tool), _) => format!("forgotten: results of `{tool}`"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_reasons_that_were_met_are_named() {
        let reasons = [("plan", 2), ("settling", 0), ("writing", 1)];
        let reasons = reasons.map(|(word, count)| (word.to_owned(), count));
        assert_eq!(with_reasons(3, &reasons.into()), "3 (plan 2, writing 1)");
        assert_eq!(with_reasons(0, &BTreeMap::new()), "0");
    }

    #[test]
    fn unsettled_state_is_told_with_its_cause() {
        let state = UnsettledView {
            state: "`order:{id}`".into(),
            set: "shop".into(),
            tool: "ship".into(),
            reason: "outcome_unknown".into(),
            age_ms: 250.0,
            left_ms: 1750.0,
        };
        assert_eq!(
            unsettled(&state),
            "unsettled for 250.0 ms, and for 1.75 s more: `order:{id}`; a call of shop.ship may still land \
             (outcome_unknown)"
        );
    }

    #[test]
    fn saved_time_has_the_unit_that_fits() {
        assert_eq!(saved(0.0), "0");
        assert_eq!(saved(1500.0), "1.50 s");
        assert_eq!(saved(f64::NAN), "-");
    }
}
