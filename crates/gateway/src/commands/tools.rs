//! `tollgate tools`: every tool, and what is made of it.

use std::process::ExitCode;

use crate::args::Tools;
use crate::commands::from::Place;
use crate::error::Outcome;
use crate::output::{Cell, Screen, Table};
use crate::view::ToolView;

pub(crate) async fn run(args: Tools, screen: &Screen) -> Outcome {
    let place = Place::find(&args.from).await?;
    let shown = place.tools().await.map(|tools| {
        if args.json {
            for tool in &tools {
                screen.json(tool);
            }
        } else {
            screen.table(&table(&tools));
        }
    });
    place.end().await;
    shown?;
    Ok(ExitCode::SUCCESS)
}

/// Puts the verdicts under each other.
pub(crate) fn table(tools: &[ToolView]) -> Table {
    let mut table = Table::new(&[
        "tool", "effect", "safety", "cache", "repeat", "confirm", "source",
    ]);
    for tool in tools {
        let confirm = if tool.plan.confirm { "yes" } else { "no" };
        table.row(vec![
            Cell::plain(&tool.name),
            Cell::effect(&tool.plan.effect),
            Cell::plain(&tool.plan.safety),
            Cell::plain(&tool.plan.cache),
            Cell::plain(&tool.plan.repeat),
            Cell::warn(confirm, tool.plan.confirm),
            Cell::plain(source(tool)),
        ]);
    }
    table
}

/// Names the source, and how many rules over the arguments may say otherwise of a call.
fn source(tool: &ToolView) -> String {
    match tool.plan.argument_rules {
        0 => tool.source.clone(),
        1 => format!("{}, 1 rule", tool.source),
        several => format!("{}, {several} rules", tool.source),
    }
}
