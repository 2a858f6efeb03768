//! `callward breakers`: how the breakers of a running gateway are, and holding them open or closed.

use std::process::ExitCode;
use std::time::Duration;

use crate::api;
use crate::args::{Breakers, BreakersCommand, WhichBreaker};
use crate::error::Outcome;
use crate::output::{Cell, Screen, Table, took};
use crate::state_dir::StateDir;
use crate::view::{BreakerView, Force, ForceAction};

pub(crate) async fn run(args: Breakers, state: Option<&StateDir>, screen: &Screen) -> Outcome {
    let (remote, _) = api::gateway(&args.gateway, state).await?;
    let (action, which) = match args.command {
        None => {
            let all = remote.breakers().await?;
            if args.json {
                screen.json(&all);
            } else {
                show(&all, screen);
            }
            return Ok(ExitCode::SUCCESS);
        }
        Some(BreakersCommand::Open(which)) => (ForceAction::Open, which),
        Some(BreakersCommand::Close(which)) => (ForceAction::Close, which),
        Some(BreakersCommand::Release(which)) => (ForceAction::Release, which),
    };
    let WhichBreaker {
        server,
        tool,
        discovery,
    } = which;
    let forced = remote
        .force(&Force {
            action,
            server,
            tool,
            discovery,
        })
        .await?;
    if args.json {
        screen.json(&forced);
    } else {
        show(std::slice::from_ref(&forced.breaker), screen);
    }
    Ok(ExitCode::SUCCESS)
}

fn show(all: &[BreakerView], screen: &Screen) {
    let mut table = Table::new(&[
        "server",
        "before",
        "state",
        "failures",
        "window",
        "probe in",
        "opened after",
    ]);
    for one in all {
        let window = match &one.window {
            Some(window) => format!(
                "{} calls, {} failed, {} slow",
                window.calls, window.failed, window.slow
            ),
            None => "-".into(),
        };
        table.row(vec![
            Cell::plain(&one.server),
            Cell::plain(before(one)),
            Cell::warn(one.state.replace('_', " "), one.state != "closed"),
            Cell::plain(one.failures),
            Cell::plain(window),
            Cell::plain(one.probe_in_ms.map_or_else(|| "-".into(), wait)),
            Cell::plain(one.last_trip.as_deref().unwrap_or("-")),
        ]);
    }
    screen.table(&table);
}

/// Says what a breaker stands before, and of whose instance.
fn before(breaker: &BreakerView) -> String {
    let subject = breaker.tool.as_deref().unwrap_or(&breaker.scope);
    match &breaker.instance {
        Some(owner) => format!("{subject} for {owner}"),
        None => subject.to_owned(),
    }
}

fn wait(millis: f64) -> String {
    Duration::try_from_secs_f64(millis / 1000.0).map_or_else(|_| "-".into(), took)
}
