//! [`Options`]: the command line of a client.

/// The command line, the same for every client.
#[derive(Clone, Default)]
pub struct Options {
    /// For example `http://127.0.0.1:4000/v1`.
    pub base_url: String,
    /// The model to ask for; it says what the server answers.
    pub model: String,
    /// For a program that is several clients: which one.
    pub mode: String,
    /// Conversations to run.
    pub convs: u64,
    /// Conversations at once.
    pub conc: u64,
    /// Conversations before the measured ones.
    pub warmup: u64,
    /// Size to which the tool's answer is padded.
    pub result_bytes: usize,
    /// Note the CPU used when this many tool calls have been executed.
    pub marks: Vec<u64>,
}

impl Options {
    pub(crate) fn from_args() -> Self {
        let mut options = Self { convs: 1, conc: 1, warmup: 1, ..Self::default() };
        let mut args = std::env::args().skip(1);
        while let Some(name) = args.next() {
            let value = args.next().unwrap_or_else(|| panic!("{name} needs a value"));
            let number = || value.parse().unwrap_or_else(|_| panic!("{name} needs a number"));
            match name.as_str() {
                "--base-url" => options.base_url = value,
                "--model" => options.model = value,
                "--mode" => options.mode = value,
                "--convs" => options.convs = number(),
                "--conc" => options.conc = number(),
                "--warmup" => options.warmup = number(),
                "--result-bytes" => options.result_bytes = number() as usize,
                "--marks" => {
                    options.marks = value.split(',').filter_map(|s| s.parse().ok()).collect();
                }
                _ => panic!("unknown option {name}"),
            }
        }
        options
    }
}
