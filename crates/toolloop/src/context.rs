//! [`ContextWindow`]: messages under a budget of tokens, for programs that keep their own
//! conversation. A loop shortens its requests by itself, with
//! [`compaction`](crate::ToolLoopConfig::compaction); both choose by the same rule.

use toolloop_core::policy::window::{Piece, choose, pieces};
use toolloop_core::{ChatMessage, ChatRole};

pub use toolloop_core::estimate_tokens;
pub use toolloop_core::policy::window::{Weight, message_tokens, request_tokens};

/// Messages, what each costs and how much it matters; gives those that fit into a budget, without
/// parting a call from its results.
///
/// ```
/// use toolloop::ChatMessage;
/// use toolloop::context::{ContextWindow, Weight};
///
/// // A model of 40 tokens, 10 of them for its reply.
/// let mut window = ContextWindow::new(40, 10);
/// window.push(ChatMessage::system("Be brief."), 5);
/// window.push(ChatMessage::user("A long story"), 20);
/// window.push_weighted(ChatMessage::user("My name is Ada."), 6, Weight::High);
/// window.push(ChatMessage::user("Who am I?"), 4);
/// assert!(window.needs_compaction(0.8));
///
/// let fitting = window.fit()?;
/// assert_eq!(fitting.len(), 3);
/// assert_eq!(fitting[1], ChatMessage::user("My name is Ada."));
/// # Ok::<(), toolloop::context::Overfull>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ContextWindow {
    budget: u32,
    messages: Vec<ChatMessage>,
    /// Tokens and weight of each message.
    entries: Vec<(u32, Weight)>,
    protected: usize,
}

/// What must stay is more than the budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "the required messages hold {required} tokens, the window has room for {budget}: shorten \
     them, require fewer, or reserve less for the reply"
)]
pub struct Overfull {
    /// Tokens of what must stay.
    pub required: u32,
    /// Tokens there is room for.
    pub budget: u32,
}

impl ContextWindow {
    /// A window of `max_tokens`, of which so many are kept free for the reply. Where that is all
    /// of them, nothing fits.
    pub fn new(max_tokens: u32, reserved_for_output: u32) -> Self {
        Self { budget: max_tokens.saturating_sub(reserved_for_output), ..Self::default() }
    }

    /// Adds a message of so many tokens. A system message is [`Weight::Required`], every other
    /// [`Weight::Normal`].
    pub fn push(&mut self, message: ChatMessage, tokens: u32) -> &mut Self {
        let weight = match message.role {
            ChatRole::System => Weight::Required,
            _ => Weight::Normal,
        };
        self.push_weighted(message, tokens, weight)
    }

    /// Adds a message and says how much it matters. An assistant message with calls and their
    /// results weigh together what the heaviest of them weighs.
    pub fn push_weighted(
        &mut self,
        message: ChatMessage,
        tokens: u32,
        weight: Weight,
    ) -> &mut Self {
        self.messages.push(message);
        self.entries.push((tokens, weight));
        self
    }

    /// Adds a message whose tokens are estimated.
    pub fn push_estimated(&mut self, message: ChatMessage) -> &mut Self {
        let tokens = message_tokens(&message);
        self.push(message, tokens)
    }

    /// The newest `count` messages are required from now on, whichever they are.
    pub fn protect_recent(&mut self, count: usize) -> &mut Self {
        self.protected = count;
        self
    }

    /// Tokens there is room for.
    pub fn budget(&self) -> u32 {
        self.budget
    }

    /// Tokens of all messages.
    pub fn total_tokens(&self) -> u32 {
        self.entries.iter().fold(0, |sum, (tokens, _)| sum.saturating_add(*tokens))
    }

    /// Tokens that are free; 0 where the messages are too many.
    pub fn available(&self) -> u32 {
        self.budget.saturating_sub(self.total_tokens())
    }

    /// Whether the messages hold more than this share of the budget, 0.8 for four fifths.
    pub fn needs_compaction(&self, share: f32) -> bool {
        f64::from(self.total_tokens()) > f64::from(self.budget) * f64::from(share)
    }

    /// All messages, oldest first.
    pub fn iter(&self) -> impl Iterator<Item = &ChatMessage> {
        self.messages.iter()
    }

    /// How many messages there are.
    pub fn len(&self) -> usize {
        self.messages.len()
    }

    /// Whether there is no message.
    pub fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }

    /// The messages that fit, oldest first: all that is required, then the heavier before the
    /// lighter and the newer before the older. What stays of one weight has no holes.
    ///
    /// # Errors
    /// When what is required is too much.
    pub fn fit(&self) -> Result<Vec<ChatMessage>, Overfull> {
        let pieces = self.pieces();
        let chosen = choose(&pieces, self.budget);
        let tokens = chosen.iter().map(|at| pieces[*at].tokens).fold(0, u32::saturating_add);
        if tokens > self.budget {
            return Err(Overfull { required: tokens, budget: self.budget });
        }
        let ranges = chosen.into_iter().map(|at| pieces[at].messages.clone());
        Ok(ranges.flat_map(|range| &self.messages[range]).cloned().collect())
    }

    /// Takes out all that is not required, to be summed up; what to do with it, and to put a
    /// summary in its place, is the caller's.
    pub fn compact(&mut self) -> Vec<ChatMessage> {
        let mut stays = vec![false; self.messages.len()];
        for piece in self.pieces() {
            stays[piece.messages].fill(piece.weight == Weight::Required);
        }
        let mut stays = stays.into_iter();
        let (mut removed, mut kept) = (Vec::new(), Vec::new());
        let mut entries = Vec::new();
        for (message, entry) in self.messages.drain(..).zip(self.entries.drain(..)) {
            match stays.next() {
                Some(true) => {
                    kept.push(message);
                    entries.push(entry);
                }
                _ => removed.push(message),
            }
        }
        (self.messages, self.entries) = (kept, entries);
        removed
    }

    /// What belongs together, with the tokens and weights that were told.
    fn pieces(&self) -> Vec<Piece> {
        let protected_from = self.messages.len().saturating_sub(self.protected);
        let mut pieces = pieces(&self.messages);
        for piece in &mut pieces {
            let entries = &self.entries[piece.messages.clone()];
            piece.tokens = entries.iter().fold(0, |sum, (tokens, _)| sum.saturating_add(*tokens));
            piece.weight = match piece.messages.end > protected_from {
                true => Weight::Required,
                false => entries.iter().map(|(_, weight)| *weight).max().unwrap_or_default(),
            };
        }
        pieces
    }
}
