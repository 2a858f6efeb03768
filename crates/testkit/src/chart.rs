//! Lines over an axis, panel by panel, as an SVG document that needs nothing else.

use std::fmt::{self, Write};
use std::ops::Range;

/// One panel. Points outside of its axes are drawn at their end.
#[derive(Debug, Clone, Default)]
#[expect(
    clippy::exhaustive_structs,
    reason = "made by hand in benches, and never published"
)]
pub struct Panel {
    /// What stands above it.
    pub title: String,
    /// What stands below it: what the axes are.
    pub caption: String,
    /// From left to right.
    pub x: Axis,
    /// From bottom to top.
    pub y: Axis,
    /// A part of the x axis that is shaded.
    pub window: Option<Range<f64>>,
    /// A dashed line to compare with, and what it is.
    pub level: Option<(f64, &'static str)>,
    /// The lines; a later one is drawn above an earlier one.
    pub lines: Vec<Line>,
}

/// What an axis reaches to, and what is written beside it.
#[derive(Debug, Clone, Default)]
#[expect(
    clippy::exhaustive_structs,
    reason = "made by hand in benches, and never published"
)]
pub struct Axis {
    /// Its ends.
    pub range: Range<f64>,
    /// Where something is written, and what.
    pub ticks: Vec<(f64, String)>,
}

/// One line.
#[derive(Debug, Clone, Default)]
#[expect(
    clippy::exhaustive_structs,
    reason = "made by hand in benches, and never published"
)]
pub struct Line {
    /// What the legend says.
    pub name: String,
    /// Its colour, as SVG writes it.
    pub colour: &'static str,
    /// Dashed, for what is only there to compare with.
    pub dashed: bool,
    /// Its points, from left to right.
    pub points: Vec<(f64, f64)>,
}

/// Draws all panels, one under the other.
#[must_use]
pub fn svg(panels: &[Panel]) -> String {
    let height = HEIGHT * panels.len() as f64;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" \
         font-family=\"sans-serif\" font-size=\"13\" fill=\"#222\">\n\
         <rect width=\"{WIDTH}\" height=\"{height}\" fill=\"#fff\"/>\n"
    );
    for (place, panel) in panels.iter().enumerate() {
        let top = HEIGHT * place as f64 + 45.0;
        // writing to a string cannot fail
        let _ = Placed { panel, top }.draw(&mut svg);
    }
    svg + "</svg>\n"
}

const WIDTH: f64 = 920.0;
const HEIGHT: f64 = 300.0;
const LEFT: f64 = 70.0;
const RIGHT: f64 = 690.0;
/// Rows of the legend.
const ROW: f64 = 19.0;

struct Placed<'a> {
    panel: &'a Panel,
    top: f64,
}

impl Placed<'_> {
    fn bottom(&self) -> f64 {
        self.top + HEIGHT - 95.0
    }

    fn x(&self, at: f64) -> f64 {
        LEFT + (RIGHT - LEFT) * part(&self.panel.x.range, at)
    }

    fn y(&self, at: f64) -> f64 {
        self.bottom() - (self.bottom() - self.top) * part(&self.panel.y.range, at)
    }

    fn draw(&self, svg: &mut String) -> fmt::Result {
        let (top, bottom) = (self.top, self.bottom());
        let (title, caption) = (escaped(&self.panel.title), escaped(&self.panel.caption));
        writeln!(
            svg,
            "<text x=\"{LEFT}\" y=\"{:.0}\" font-size=\"16\">{title}</text>",
            top - 14.0
        )?;
        if let Some(window) = &self.panel.window {
            let (from, to) = (self.x(window.start), self.x(window.end));
            let (wide, high) = (to - from, bottom - top);
            writeln!(
                svg,
                "<rect x=\"{from:.1}\" y=\"{top}\" width=\"{wide:.1}\" height=\"{high}\" \
                 fill=\"#f3e9e9\"/>"
            )?;
        }
        writeln!(
            svg,
            "<path d=\"M{LEFT} {top}V{bottom}H{RIGHT}\" fill=\"none\" stroke=\"#888\"/>\n\
             <text x=\"{:.0}\" y=\"{:.0}\" text-anchor=\"middle\">{caption}</text>",
            (LEFT + RIGHT) / 2.0,
            bottom + 36.0,
        )?;
        self.ticks(svg)?;
        for (place, line) in self.panel.lines.iter().enumerate() {
            self.line(svg, place, line)?;
        }
        Ok(())
    }

    fn ticks(&self, svg: &mut String) -> fmt::Result {
        for (at, words) in &self.panel.x.ticks {
            let (x, y) = (self.x(*at), self.bottom() + 18.0);
            let words = escaped(words);
            writeln!(
                svg,
                "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"middle\">{words}</text>"
            )?;
        }
        for (at, words) in &self.panel.y.ticks {
            let (x, y) = (LEFT - 8.0, self.y(*at) + 4.0);
            let words = escaped(words);
            writeln!(
                svg,
                "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"end\">{words}</text>"
            )?;
        }
        let Some((at, words)) = self.panel.level else {
            return Ok(());
        };
        let y = self.y(at);
        writeln!(
            svg,
            "<path d=\"M{LEFT} {y:.1}H{RIGHT}\" stroke=\"#bbb\" stroke-dasharray=\"4 4\"/>\n\
             <text x=\"{:.0}\" y=\"{:.1}\" fill=\"#888\">{words}</text>",
            RIGHT + 6.0,
            y + 4.0,
        )
    }

    fn line(&self, svg: &mut String, place: usize, line: &Line) -> fmt::Result {
        let mut path = String::new();
        for (x, y) in &line.points {
            let step = if path.is_empty() { 'M' } else { 'L' };
            write!(path, "{step}{:.1} {:.1}", self.x(*x), self.y(*y))?;
        }
        let dashes = if line.dashed {
            " stroke-dasharray=\"6 4\""
        } else {
            ""
        };
        let look = format!(
            "fill=\"none\" stroke=\"{}\" stroke-width=\"2\"{dashes}",
            line.colour
        );
        writeln!(svg, "<path d=\"{path}\" stroke-linejoin=\"round\" {look}/>")?;
        let (x, y) = (RIGHT + 18.0, self.top + 20.0 + ROW * place as f64);
        writeln!(svg, "<path d=\"M{x} {y}h28\" {look}/>")?;
        let (x, y) = (x + 36.0, y + 4.0);
        let name = escaped(&line.name);
        writeln!(svg, "<text x=\"{x}\" y=\"{y}\">{name}</text>")
    }
}

/// Which part of the way `at` is, from one end to the other.
fn part(range: &Range<f64>, at: f64) -> f64 {
    let long = range.end - range.start;
    if long > 0.0 {
        ((at - range.start) / long).clamp(0.0, 1.0)
    } else {
        0.0
    }
}

fn escaped(words: &str) -> String {
    words.replace('&', "&amp;").replace('<', "&lt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn panel() -> Panel {
        Panel {
            title: "a < b".to_owned(),
            x: Axis {
                range: 0.0..10.0,
                ticks: vec![(5.0, "five".to_owned())],
            },
            y: Axis {
                range: 0.0..1.0,
                ticks: Vec::new(),
            },
            window: Some(2.0..4.0),
            level: Some((0.5, "half")),
            lines: vec![Line {
                name: "a line".to_owned(),
                colour: "#d55e00",
                dashed: false,
                points: vec![(0.0, 0.0), (5.0, 0.5), (20.0, 7.0)],
            }],
            ..Panel::default()
        }
    }

    #[test]
    fn a_line_stays_within_its_panel() {
        let drawn = svg(&[panel(), panel()]);
        assert!(
            drawn.contains("M70.0 250.0L380.0 147.5L690.0 45.0"),
            "{drawn}"
        );
        assert!(
            drawn.contains("M70.0 550.0L380.0 447.5L690.0 345.0"),
            "{drawn}"
        );
    }

    #[test]
    fn what_is_written_is_text_and_no_part_of_the_document() {
        let drawn = svg(&[panel()]);
        for words in [">a &lt; b<", ">five<", ">half<", ">a line<"] {
            assert!(drawn.contains(words), "{words}: {drawn}");
        }
    }

    #[test]
    fn an_axis_without_length_is_no_fault() {
        let mut empty = panel();
        empty.x.range = 3.0..3.0;
        assert!(!svg(&[empty]).contains("NaN"));
    }
}
