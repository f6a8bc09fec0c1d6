//! [`layout`]: a table in columns that fit the terminal.

use pulldown_cmark::Alignment;

use super::paint::Paint;
use super::text::{Span, painted_width, width, wrap};

/// The lines of a table whose first row is its head.
pub(crate) fn layout(
    rows: &[Vec<Vec<Span>>],
    alignments: &[Alignment],
    columns: usize,
    paint: Paint,
) -> Vec<String> {
    let widths = column_widths(rows, alignments.len(), columns);
    let mut lines = Vec::new();
    for (i, row) in rows.iter().enumerate() {
        let cells: Vec<Vec<String>> = widths
            .iter()
            .enumerate()
            .map(|(column, &width)| match row.get(column) {
                Some(cell) => wrap(cell, width, paint),
                None => Vec::new(),
            })
            .collect();
        let height = cells.iter().map(Vec::len).max().unwrap_or(0).max(1);
        for line in 0..height {
            let parts: Vec<String> = cells
                .iter()
                .zip(&widths)
                .zip(alignments)
                .map(|((cell, &width), &alignment)| {
                    aligned(cell.get(line).map_or("", String::as_str), width, alignment)
                })
                .collect();
            lines.push(parts.join(GAP).trim_end().to_owned());
        }
        if i == 0 {
            let rules: Vec<String> = widths.iter().map(|&width| "─".repeat(width)).collect();
            lines.push(paint.dim(&rules.join(GAP)));
        }
    }
    lines
}

/// As wide as their content; if that is too much, the widest give way first.
fn column_widths(rows: &[Vec<Vec<Span>>], count: usize, columns: usize) -> Vec<usize> {
    let mut widths: Vec<usize> = (0..count)
        .map(|column| rows.iter().map(|row| natural_width(row.get(column))).max().unwrap_or(0))
        .map(|width| width.max(1))
        .collect();
    let available = columns.saturating_sub(GAP.len() * count.saturating_sub(1)).max(count);
    while widths.iter().sum::<usize>() > available {
        let Some(widest) = widths.iter_mut().max() else { break };
        *widest -= 1;
    }
    widths
}

fn natural_width(cell: Option<&Vec<Span>>) -> usize {
    cell.map_or(0, |spans| spans.iter().map(|span| width(&span.text)).sum())
}

fn aligned(text: &str, columns: usize, alignment: Alignment) -> String {
    let missing = columns.saturating_sub(painted_width(text));
    let left = match alignment {
        Alignment::Right => missing,
        Alignment::Center => missing / 2,
        Alignment::Left | Alignment::None => 0,
    };
    format!("{}{text}{}", " ".repeat(left), " ".repeat(missing - left))
}

const GAP: &str = "  ";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::terminal::paint::Style;

    #[test]
    fn wide_cells_are_wrapped_and_columns_aligned() {
        let cell = |text: &str| vec![Span::new(text, Style::PLAIN)];
        let rows = vec![
            vec![cell("name"), cell("what it does"), cell("n")],
            vec![cell("bash"), cell("runs a command of yours"), cell("10")],
            vec![cell("x")],
        ];
        let alignments = [Alignment::Left, Alignment::None, Alignment::Right];
        assert_eq!(
            layout(&rows, &alignments, 24, Paint::new(false)),
            [
                "name  what it does     n",
                "────  ──────────────  ──",
                "bash  runs a command  10",
                "      of yours",
                "x",
            ]
        );
    }
}
