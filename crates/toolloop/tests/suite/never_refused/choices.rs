//! [`Choices`]: where a random history takes its turns, kept on a tape.
//!
//! A tape that is played again gives the same history; a shorter one, or one with smaller numbers,
//! gives a simpler history. So a failing history is made small without knowing what it is.

/// Random numbers that were drawn, or are drawn now. 0 is the plainest choice.
pub(crate) struct Choices {
    tape: Vec<u32>,
    at: usize,
    random: Option<fastrand::Rng>,
}

impl Choices {
    pub(crate) fn random(seed: u64) -> Self {
        Self { tape: Vec::new(), at: 0, random: Some(fastrand::Rng::with_seed(seed)) }
    }

    pub(crate) fn replay(tape: Vec<u32>) -> Self {
        Self { tape, at: 0, random: None }
    }

    /// The numbers that were drawn.
    pub(crate) fn into_tape(mut self) -> Vec<u32> {
        self.tape.truncate(self.at);
        self.tape
    }

    /// A number below `n`.
    pub(crate) fn below(&mut self, n: usize) -> usize {
        if let Some(random) = &mut self.random {
            self.tape.push(random.u32(..));
        }
        let drawn = self.tape.get(self.at).copied().unwrap_or(0);
        self.at += 1;
        drawn as usize % n
    }

    /// True once in `n` times.
    pub(crate) fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == n - 1
    }

    /// One of a list, the plainest first.
    pub(crate) fn pick<T: Clone>(&mut self, list: &[T]) -> T {
        list[self.below(list.len())].clone()
    }

    /// A list of up to `most`.
    pub(crate) fn list<T>(&mut self, most: usize, mut one: impl FnMut(&mut Self) -> T) -> Vec<T> {
        (0..self.below(most + 1)).map(|_| one(self)).collect()
    }
}

/// The smallest tape found within some seconds on which `fails` still holds.
pub(crate) fn smallest(mut tape: Vec<u32>, mut fails: impl FnMut(&[u32]) -> bool) -> Vec<u32> {
    let end = std::time::Instant::now() + std::time::Duration::from_secs(10);
    loop {
        let before = tape.clone();
        let mut size = tape.len() / 2;
        while size > 0 {
            let mut at = 0;
            while at + size <= tape.len() && std::time::Instant::now() < end {
                let without = [&tape[..at], &tape[at + size..]].concat();
                match fails(&without) {
                    true => tape = without,
                    false => at += size.div_ceil(2),
                }
            }
            size /= 2;
        }
        for at in 0..tape.len() {
            for smaller in [0, 1, tape[at] % 12] {
                let mut other = tape.clone();
                other[at] = smaller;
                let is_worth = smaller < tape[at] && std::time::Instant::now() < end;
                if is_worth && fails(&other) {
                    tape = other;
                    break;
                }
            }
        }
        if tape == before || std::time::Instant::now() >= end {
            return tape;
        }
    }
}
