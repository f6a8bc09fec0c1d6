//! [`Screen`]: a terminal with lines that stay and, below them, live lines that are repainted.
//!
//! There is no alternate screen: what stays goes into the terminal's own scrollback. Only the
//! live lines are ever erased, and all of a frame goes out in one write.

use std::io::{self, Write};
use std::os::fd::AsFd;

use super::text::painted_width;

/// A terminal, or a plain stream where escape sequences are not wanted.
pub(crate) struct Screen<W> {
    out: W,
    size: Size,
    /// Whether lines can be repainted.
    live: bool,
    /// The live lines on the screen.
    shown: Vec<String>,
}

/// Columns and rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Size {
    pub(crate) columns: usize,
    pub(crate) rows: usize,
}

impl Size {
    /// Of the terminal this process writes to.
    pub(crate) fn of_process() -> Self {
        let stdout = std::io::stdout();
        match rustix::termios::isatty(&stdout) {
            true => Self::of(stdout),
            false => Self::of(std::io::stderr()),
        }
    }

    /// Of the terminal behind this descriptor; 80 by 24 where it does not say.
    fn of(terminal: impl AsFd) -> Self {
        match rustix::termios::tcgetwinsize(terminal) {
            Ok(size) if size.ws_col > 0 && size.ws_row > 0 => {
                Self { columns: size.ws_col.into(), rows: size.ws_row.into() }
            }
            _ => Self { columns: 80, rows: 24 },
        }
    }
}

impl<W: Write> Screen<W> {
    /// A screen on `out`; without `live` it only prints.
    pub(crate) fn new(out: W, size: Size, live: bool) -> Self {
        Self { out, size, live, shown: Vec::new() }
    }

    pub(crate) fn size(&self) -> Size {
        self.size
    }

    pub(crate) fn resize(&mut self, size: Size) {
        self.size = size;
    }

    pub(crate) fn is_live(&self) -> bool {
        self.live
    }

    /// Prints lines that stay, and shows `live` below them instead of what was live before.
    pub(crate) fn frame(&mut self, lines: &[String], live: Vec<String>) -> io::Result<()> {
        let live = if self.live { self.fitting(live) } else { Vec::new() };
        if lines.is_empty() && live == self.shown {
            return Ok(());
        }
        let mut frame = self.erase();
        for line in lines {
            frame.push_str(line);
            frame.push('\n');
        }
        frame.push_str(&live.join("\n"));
        self.shown = live;
        self.write(&frame)
    }

    /// Prints text as it is, with no line break of its own; for plain streams.
    pub(crate) fn write(&mut self, text: &str) -> io::Result<()> {
        self.out.write_all(text.as_bytes())?;
        self.out.flush()
    }

    /// The last lines there is room for: a taller frame would scroll and could not be erased.
    fn fitting(&self, mut live: Vec<String>) -> Vec<String> {
        // A tab is as wide as the terminal likes; rows could not be counted.
        live.iter_mut().filter(|line| line.contains('\t')).for_each(|line| {
            *line = line.replace('\t', "    ");
        });
        let mut rows = 0;
        let first = live
            .iter()
            .rposition(|line| {
                rows += self.rows_of(line);
                rows >= self.size.rows
            })
            .map_or(0, |cut| cut + 1);
        live.drain(..first);
        live
    }

    /// Goes to the start of the live lines and erases from there. A terminal that became narrower
    /// has wrapped them, so rows are counted for the width it has now.
    fn erase(&mut self) -> String {
        if self.shown.is_empty() {
            return String::new();
        }
        let rows: usize = self.shown.iter().map(|line| self.rows_of(line)).sum();
        match rows.min(self.size.rows) - 1 {
            0 => "\r\x1b[J".to_owned(),
            up => format!("\r\x1b[{up}A\x1b[J"),
        }
    }

    fn rows_of(&self, line: &str) -> usize {
        painted_width(line).div_ceil(self.size.columns).max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn screen(live: bool) -> Screen<Vec<u8>> {
        Screen::new(Vec::new(), Size { columns: 10, rows: 4 }, live)
    }

    fn lines<const N: usize>(lines: [&str; N]) -> Vec<String> {
        lines.map(str::to_owned).into()
    }

    /// What was written since the last look.
    fn written(screen: &mut Screen<Vec<u8>>) -> String {
        String::from_utf8(std::mem::take(&mut screen.out)).unwrap()
    }

    #[test]
    fn live_lines_are_repainted_below_what_stays() {
        let mut screen = screen(true);
        screen.frame(&lines(["head"]), lines(["a", "b"])).unwrap();
        assert_eq!(written(&mut screen), "head\na\nb");
        screen.frame(&lines(["done"]), lines(["b"])).unwrap();
        assert_eq!(written(&mut screen), "\r\x1b[1A\x1b[Jdone\nb");
        screen.frame(&[], lines(["b"])).unwrap();
        assert_eq!(written(&mut screen), "");
        screen.frame(&[], vec![]).unwrap();
        assert_eq!(written(&mut screen), "\r\x1b[J");
    }

    #[test]
    fn a_narrower_terminal_has_wrapped_the_live_lines() {
        let mut screen = screen(true);
        screen.frame(&[], lines(["123456789", "x"])).unwrap();
        written(&mut screen);
        screen.resize(Size { columns: 5, rows: 4 });
        screen.frame(&[], vec![]).unwrap();
        assert_eq!(written(&mut screen), "\r\x1b[2A\x1b[J");
    }

    #[test]
    fn only_as_much_is_live_as_fits() {
        let mut screen = screen(true);
        screen.frame(&[], lines(["1", "2", "3", "4", "\t5"])).unwrap();
        assert_eq!(written(&mut screen), "3\n4\n    5");
    }

    #[test]
    fn a_plain_stream_gets_no_escape_byte() {
        let mut screen = screen(false);
        screen.frame(&lines(["head"]), lines(["a"])).unwrap();
        screen.frame(&lines(["tail"]), lines(["b"])).unwrap();
        assert_eq!(written(&mut screen), "head\ntail\n");
    }
}
