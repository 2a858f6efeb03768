//! Goodput over time, one panel for each outage, as an SVG document that needs nothing else.

use std::fmt::Write;

use crate::figures::Figures;
use crate::policies::Policy;
use crate::world::{Outage, Size};

const WIDTH: f64 = 860.0;
const PANEL: f64 = 300.0;
const LEFT: f64 = 70.0;
const RIGHT: f64 = 700.0;

/// Draws all panels, one under the other.
pub(crate) fn svg(size: &Size, found: &[Figures]) -> String {
    let height = PANEL * Outage::ALL.len() as f64;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" \
         font-family=\"sans-serif\" font-size=\"13\" fill=\"#222\">\n\
         <rect width=\"{WIDTH}\" height=\"{height}\" fill=\"#fff\"/>\n"
    );
    for (place, outage) in Outage::ALL.into_iter().enumerate() {
        let shown = |figures: &&Figures| figures.happened && figures.outage == outage.name();
        let figures: Vec<_> = found.iter().filter(shown).collect();
        let panel = Panel::new(size, outage, place, &figures);
        // writing to a string cannot fail
        let _ = panel.draw(&mut svg, size, &figures);
    }
    svg + "</svg>\n"
}

/// One panel: where it stands, and what its axes reach to.
struct Panel {
    title: &'static str,
    top: f64,
    bottom: f64,
    seconds: f64,
    highest: f64,
    /// Answers a second, if all calls were answered.
    offered: f64,
}

impl Panel {
    fn new(size: &Size, outage: Outage, place: usize, figures: &[&Figures]) -> Self {
        let struck = (0..size.sets).filter(|set| outage.strikes(*set)).count();
        let offered = size.load * size.capacity() * struck as f64;
        let most = figures.iter().flat_map(|figures| &figures.goodput).max();
        let top = PANEL * place as f64 + 45.0;
        Self {
            title: outage.name(),
            top,
            bottom: top + PANEL - 95.0,
            seconds: size.length().as_secs_f64(),
            highest: f64::from(*most.unwrap_or(&1)).max(offered) * 1.05,
            offered,
        }
    }

    fn x(&self, second: f64) -> f64 {
        LEFT + (RIGHT - LEFT) * second / self.seconds
    }

    fn y(&self, goodput: f64) -> f64 {
        self.bottom - (self.bottom - self.top) * goodput / self.highest
    }

    fn draw(&self, svg: &mut String, size: &Size, found: &[&Figures]) -> std::fmt::Result {
        let Self {
            top,
            bottom,
            title,
            offered,
            ..
        } = self;
        let window = size.window();
        let (from, to) = (
            self.x(window.start.as_secs_f64()),
            self.x(window.end.as_secs_f64()),
        );
        let wide = to - from;
        let high = bottom - top;
        writeln!(
            svg,
            "<text x=\"{LEFT}\" y=\"{:.0}\" font-size=\"16\">{title}</text>\n\
             <rect x=\"{from:.1}\" y=\"{top}\" width=\"{wide:.1}\" height=\"{high}\" fill=\"#f3e9e9\"/>\n\
             <path d=\"M{LEFT} {top}V{bottom}H{RIGHT}\" fill=\"none\" stroke=\"#888\"/>\n\
             <path d=\"M{LEFT} {y:.1}H{RIGHT}\" stroke=\"#bbb\" stroke-dasharray=\"4 4\"/>\n\
             <text x=\"{:.0}\" y=\"{:.1}\" fill=\"#888\">offered</text>\n\
             <text x=\"{:.0}\" y=\"{:.0}\" text-anchor=\"middle\">seconds; calls answered in each, \
             of the sets that are struck</text>",
            top - 14.0,
            RIGHT + 6.0,
            self.y(*offered) + 4.0,
            (LEFT + RIGHT) / 2.0,
            bottom + 36.0,
            y = self.y(*offered),
        )?;
        for second in (0..=size.length().as_secs()).step_by(20) {
            let x = self.x(second as f64);
            let y = bottom + 18.0;
            writeln!(
                svg,
                "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"middle\">{second}</text>"
            )?;
        }
        for part in 0..=4 {
            let goodput = (self.highest * f64::from(part) / 4.0).floor();
            let (x, y) = (LEFT - 8.0, self.y(goodput) + 4.0);
            writeln!(
                svg,
                "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"end\">{goodput}</text>"
            )?;
        }
        for (place, figures) in found.iter().enumerate() {
            let colour = colour(figures.policy);
            let mut path = String::new();
            for (second, goodput) in figures.goodput.iter().enumerate() {
                let step = if second == 0 { 'M' } else { 'L' };
                let (x, y) = (self.x(second as f64 + 0.5), self.y(f64::from(*goodput)));
                write!(path, "{step}{x:.1} {y:.1}")?;
            }
            let line = format!("fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"");
            writeln!(svg, "<path d=\"{path}\" stroke-linejoin=\"round\" {line}/>")?;
            let (x, y) = (RIGHT + 18.0, top + 60.0 + 22.0 * place as f64);
            writeln!(svg, "<path d=\"M{x} {y}h28\" {line}/>")?;
            let (x, y) = (x + 36.0, y + 4.0);
            writeln!(svg, "<text x=\"{x}\" y=\"{y}\">{}</text>", figures.policy)?;
        }
        Ok(())
    }
}

/// Colours that can be told apart by people who see few of them.
fn colour(policy: &str) -> &'static str {
    if policy == Policy::Ours.name() {
        "#d55e00"
    } else if policy == Policy::Naive.name() {
        "#0072b2"
    } else {
        "#999999"
    }
}
