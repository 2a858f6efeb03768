//! `callward servers`: how the servers of a running gateway are, and taking them out of service.

use std::process::ExitCode;
use std::time::Duration;

use callward::ServerId;

use crate::api;
use crate::args::{Servers, ServersCommand};
use crate::config::show_size;
use crate::error::Outcome;
use crate::output::{Cell, Screen, Table, took};
use crate::state_dir::StateDir;
use crate::view::{InstanceView, Order, ServerView};

pub(crate) async fn run(args: Servers, state: Option<&StateDir>, screen: &Screen) -> Outcome {
    let (remote, _) = api::gateway(&args.gateway, state).await?;
    let (order, server): (Order, ServerId) = match args.command {
        None => {
            let all = remote.servers().await?;
            if args.json {
                screen.json(&all);
            } else {
                show(&all, screen);
            }
            return Ok(ExitCode::SUCCESS);
        }
        Some(ServersCommand::Drain(which)) => (Order::Drain, which.server),
        Some(ServersCommand::Undrain(which)) => (Order::Undrain, which.server),
        Some(ServersCommand::Weigh(weigh)) => (Order::Weigh(weigh.weight), weigh.server),
    };
    let ordered = remote.order(order, &server).await?;
    if args.json {
        screen.json(&ordered);
    } else {
        show(std::slice::from_ref(&ordered.server), screen);
    }
    Ok(ExitCode::SUCCESS)
}

fn show(all: &[ServerView], screen: &Screen) {
    let mut table = Table::new(&[
        "server",
        "set",
        "weight",
        "state",
        "in flight",
        "calls",
        "errors",
        "mean",
        "p50",
        "p99",
        "tools",
    ]);
    for one in all {
        table.row(vec![
            Cell::plain(&one.id),
            Cell::plain(&one.set),
            Cell::plain(one.weight),
            Cell::warn(one.state.replace('_', " "), one.state != "healthy"),
            Cell::plain(one.in_flight),
            Cell::plain(one.calls.ended()),
            errors(one.error_rate),
            time(one.ewma_ms),
            time(one.p50_ms),
            time(one.p99_ms),
            Cell::warn(one.tools, one.tools == 0),
        ]);
    }
    screen.table(&table);
    show_instances(all, screen);
    for one in all {
        if let Some(error) = &one.last_error {
            screen.note(format_args!("{}: {error}", one.id));
        }
    }
}

/// Shows who has an instance of his own. A server that has only the one that lists its tools is left out.
fn show_instances(all: &[ServerView], screen: &Screen) {
    let several = |server: &&ServerView| {
        let owned = |one: &InstanceView| one.owner.is_some();
        server.instances.len() > 1 || server.instances.iter().any(owned)
    };
    let mut table = Table::new(&[
        "server",
        "instance of",
        "state",
        "age",
        "started in",
        "in flight",
        "calls",
        "memory",
    ]);
    let mut any = false;
    for server in all.iter().filter(several) {
        for one in &server.instances {
            any = true;
            let is_well = !matches!(one.state.as_str(), "down" | "ending");
            table.row(vec![
                Cell::plain(&server.id),
                Cell::plain(one.owner.as_deref().unwrap_or("-")),
                Cell::warn(&one.state, !is_well),
                time(Some(one.age_ms)),
                time(one.startup_ms),
                Cell::plain(one.in_flight),
                Cell::plain(one.calls),
                Cell::plain(one.memory.map_or_else(|| "-".into(), show_size)),
            ]);
        }
    }
    if any {
        screen.table(&table);
    }
}

fn errors(rate: Option<f64>) -> Cell {
    match rate {
        None => Cell::plain("-"),
        Some(rate) => Cell::warn(format_args!("{:.1} %", rate * 100.0), rate > 0.0),
    }
}

fn time(millis: Option<f64>) -> Cell {
    let time = millis.and_then(|millis| Duration::try_from_secs_f64(millis / 1000.0).ok());
    Cell::plain(time.map_or_else(|| "-".into(), took))
}
