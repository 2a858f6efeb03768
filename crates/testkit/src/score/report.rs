//! Figures for people and for programs.

use std::fmt;

use serde_json::{Value, json};

use super::figures::{Counts, Hint, Score};

impl fmt::Display for Score {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let servers = self.servers.len();
        writeln!(f, "{} tools of {servers} servers", self.tools)?;
        writeln!(
            f,
            "\n{:16} {:>6} {:>9} {:>6} {:>6} {:>6}",
            "hint", "labels", "precision", "recall", "F1", "macro"
        )?;
        for hint in Hint::ALL {
            let counts = self.total.get(&hint).copied().unwrap_or_default();
            writeln!(
                f,
                "{:16} {:>6} {:>9} {:>6} {:>6} {:>6}",
                hint.field(),
                counts.hit + counts.false_alarm + counts.miss + counts.rest,
                figure(counts.precision()),
                figure(counts.recall()),
                figure(counts.f1()),
                figure(self.macro_f1(hint)),
            )?;
        }
        let share = self
            .unsafe_share()
            .map_or_else(|| "-".to_owned(), |share| format!("{:.1} %", share * 100.0));
        writeln!(
            f,
            "\nunsafe: {} of {} writes would be called read-only ({share})",
            self.harmful.len(),
            self.writes
        )?;
        for mistake in &self.harmful {
            writeln!(f, "  {} {}: {}", mistake.server, mistake.tool, mistake.why)?;
        }
        writeln!(f, "\n{:32} F1 of each hint", "server")?;
        for (server, counts) in &self.servers {
            write!(f, "{server:32}")?;
            for hint in Hint::ALL {
                let f1 = counts.get(&hint).and_then(Counts::f1);
                write!(f, " {:>5}", figure(f1))?;
            }
            writeln!(f)?;
        }
        Ok(())
    }
}

fn figure(share: Option<f64>) -> String {
    share.map_or_else(|| "-".to_owned(), |share| format!("{share:.3}"))
}

impl Score {
    /// Returns all figures, and each mistake.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let row = |hint: Hint, counts: &Counts| {
            json!({
                "hint": hint.field(),
                "counts": counts,
                "precision": counts.precision(),
                "recall": counts.recall(),
                "f1": counts.f1(),
            })
        };
        let total: Vec<Value> = self
            .total
            .iter()
            .map(|(hint, counts)| {
                let mut row = row(*hint, counts);
                row["macroF1"] = json!(self.macro_f1(*hint));
                row
            })
            .collect();
        let servers: serde_json::Map<String, Value> = self
            .servers
            .iter()
            .map(|(server, counts)| {
                let rows = counts.iter().map(|(hint, counts)| row(*hint, counts));
                (server.clone(), rows.collect())
            })
            .collect();
        json!({
            "tools": self.tools,
            "hints": total,
            "servers": servers,
            "unsafe": {
                "writes": self.writes,
                "share": self.unsafe_share(),
                "tools": self.harmful,
            },
            "mistakes": self.mistakes,
        })
    }
}
