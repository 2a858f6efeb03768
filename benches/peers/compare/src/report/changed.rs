//! The table of answers about state that another client changed: a row for each configuration of
//! each peer.

use std::fmt::{Result, Write};

use crate::figures::{Figures, PeerFigures};
use crate::scenario::changed::WAYS;

pub(crate) fn section(page: &mut String, figures: &Figures) -> Result {
    writeln!(page, "\n### State changed by others\n")?;
    if figures.peers.iter().all(|peer| peer.changed.is_empty()) {
        return writeln!(
            page,
            "The figures on this page are older than these scenarios: the next run of \
             `scripts/compare.sh` fills this section."
        );
    }
    writeln!(page, "Wrong answers, of all answers.\n")?;
    writeln!(page, "| | {} |", WAYS.join(" | "))?;
    writeln!(page, "| --- |{}", " ---: |".repeat(WAYS.len()))?;
    for peer in &figures.peers {
        write!(page, "| {} |", peer.name)?;
        for way in WAYS {
            write!(page, " {} |", cell(peer, way))?;
        }
        writeln!(page)?;
    }
    writeln!(page, "\n–: not measured.")
}

fn cell(peer: &PeerFigures, way: &str) -> String {
    let Some(found) = peer.changed.iter().find(|found| found.way == way) else {
        return "–".to_owned();
    };
    match (found.answers, found.errors) {
        (0, 0) => "not applicable".to_owned(),
        (0, errors) => format!("none of {errors} answered"),
        (answers, 0) => format!("{} of {answers}", found.wrong),
        (answers, errors) => format!("{} of {answers}, {errors} failed", found.wrong),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::Changed;

    fn page(changed: Vec<Changed>) -> String {
        let peer = PeerFigures {
            name: "a".to_owned(),
            changed,
            ..PeerFigures::default()
        };
        let mut page = String::new();
        let figures = Figures {
            peers: vec![peer],
            ..Figures::default()
        };
        section(&mut page, &figures).unwrap();
        page
    }

    #[test]
    fn each_way_is_a_number_of_wrong_answers_or_a_reason() {
        let found = |way: usize, answers, wrong, errors| Changed {
            way: WAYS[way].to_owned(),
            answers,
            wrong,
            errors,
        };
        let page = page(vec![
            found(0, 100, 3, 0),
            found(1, 90, 0, 10),
            found(2, 0, 0, 7),
            found(3, 0, 0, 0),
        ]);
        let row = "| a | 3 of 100 | 0 of 90, 10 failed | none of 7 answered | not applicable | – |";
        assert!(page.contains(row), "{page}");
    }

    #[test]
    fn figures_without_these_scenarios_make_no_table() {
        let page = page(Vec::new());
        assert!(
            page.contains("the next run of") && !page.contains('|'),
            "{page}"
        );
    }
}
