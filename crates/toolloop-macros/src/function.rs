//! [`Function`]: a function taken apart into what makes a tool.

use proc_macro2::TokenStream;
use quote::{ToTokens, quote};
use syn::parse::{Parse, ParseStream};
use syn::spanned::Spanned;
use syn::{
    Attribute, Error, Expr, FnArg, Ident, Lit, Meta, Pat, PatType, Result, ReturnType, Safety,
    Signature, Type, TypeReference, Visibility,
};

/// A function that can be a tool.
pub(crate) struct Function {
    pub(crate) docs: Docs,
    /// Attributes other than docs.
    pub(crate) attributes: Vec<Attribute>,
    pub(crate) visibility: Visibility,
    /// The signature, its arguments without attributes.
    pub(crate) signature: Signature,
    /// Passed on as it stands, so that an editor can work on an unfinished one.
    pub(crate) body: TokenStream,
    pub(crate) arguments: Vec<Argument>,
}

/// An argument of a tool.
pub(crate) enum Argument {
    /// The loop's context; the type stands behind a reference.
    Context(Type),
    /// A `CallContext`, behind a reference.
    Call(Type),
    /// What the model passes.
    Value(Box<Value>),
}

/// An argument that the model passes.
pub(crate) struct Value {
    pub(crate) docs: Docs,
    /// Attributes other than docs.
    pub(crate) attributes: Vec<Attribute>,
    pub(crate) ident: Ident,
    pub(crate) ty: Type,
}

/// The `doc` attributes of an item.
pub(crate) struct Docs(Vec<Attribute>);

impl Parse for Function {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        let (docs, attributes) = Docs::split(input.call(Attribute::parse_outer)?);
        let visibility = input.parse()?;
        let mut signature: Signature = input.parse()?;
        let body = input.parse()?;

        let mut errors = Errors::default();
        errors.check(check_signature(&signature));
        if docs.is_empty() {
            errors.add(
                &signature.ident,
                "a tool needs a doc comment: the model reads it to know when to call the tool",
            );
        }
        let mut arguments = Vec::new();
        for input in &mut signature.inputs {
            match Argument::take(input, &arguments) {
                Ok(argument) => arguments.push(argument),
                Err(error) => errors.check(Err(error)),
            }
        }
        errors.finish()?;
        Ok(Self { docs, attributes, visibility, signature, body, arguments })
    }
}

impl Argument {
    /// Reads an argument, taking its attributes away.
    fn take(input: &mut FnArg, before: &[Self]) -> Result<Self> {
        let input = match input {
            FnArg::Typed(input) => input,
            FnArg::Receiver(_) => {
                return Err(Error::new(
                    input.span(),
                    "a tool is a free function: what it needs comes with the context, `&Ctx`",
                ));
            }
        };
        let (docs, attributes) = Docs::split(std::mem::take(&mut input.attrs));
        if let Type::Reference(reference) = &*input.ty {
            return Self::by_reference(reference, before);
        }
        let ident = name(input)?;
        if docs.is_empty() {
            return Err(Error::new(
                ident.span(),
                format!(
                    "argument `{ident}` needs a doc comment: the model reads it to know what to \
                     pass"
                ),
            ));
        }
        Ok(Self::Value(Box::new(Value { docs, attributes, ident, ty: (*input.ty).clone() })))
    }

    fn by_reference(reference: &TypeReference, before: &[Self]) -> Result<Self> {
        let error = |message| Err(Error::new(reference.span(), message));
        if reference.mutability.is_some() {
            return error("a context is shared between calls that run at once: take it by `&`");
        }
        match &*reference.elem {
            Type::Path(path) if path.path.is_ident("str") => {
                error("a tool owns what the model passes: take a `String`")
            }
            Type::Slice(_) => error("a tool owns what the model passes: take a `Vec`"),
            Type::Path(path)
                if path.path.segments.last().is_some_and(|last| last.ident == "CallContext") =>
            {
                Ok(Self::Call((*reference.elem).clone()))
            }
            context if before.iter().all(|argument| matches!(argument, Self::Call(_))) => {
                Ok(Self::Context(context.clone()))
            }
            _ => error(
                "only the context comes by reference, as the first argument; a tool owns what the \
                 model passes",
            ),
        }
    }
}

impl Docs {
    /// Parts attributes into docs and others.
    fn split(attributes: Vec<Attribute>) -> (Self, Vec<Attribute>) {
        let (docs, others) = attributes.into_iter().partition(|a| a.path().is_ident("doc"));
        (Self(docs), others)
    }

    /// An expression of type `&str`.
    pub(crate) fn text(&self) -> TokenStream {
        let lines = self.lines().map(|line| match literal(line) {
            // The space after `///`.
            Some(text) => text.strip_prefix(' ').unwrap_or(&text).to_token_stream(),
            None => line.to_token_stream(),
        });
        quote!(concat!(#(#lines, "\n"),*).trim())
    }

    fn is_empty(&self) -> bool {
        self.lines().all(|line| literal(line).is_some_and(|text| text.trim().is_empty()))
    }

    fn lines(&self) -> impl Iterator<Item = &Expr> {
        self.0.iter().filter_map(|attribute| match &attribute.meta {
            Meta::NameValue(doc) => Some(&doc.value),
            // `#[doc(hidden)]` and the like.
            _ => None,
        })
    }
}

impl ToTokens for Docs {
    fn to_tokens(&self, tokens: &mut TokenStream) {
        tokens.extend(self.0.iter().map(ToTokens::to_token_stream));
    }
}

/// Errors, to be shown all at once.
#[derive(Default)]
struct Errors(Option<Error>);

impl Errors {
    fn add(&mut self, at: &impl Spanned, message: &str) {
        self.check(Err(Error::new(at.span(), message)));
    }

    fn check(&mut self, result: Result<()>) {
        if let Err(error) = result {
            match &mut self.0 {
                Some(all) => all.combine(error),
                None => self.0 = Some(error),
            }
        }
    }

    fn finish(self) -> Result<()> {
        self.0.map_or(Ok(()), Err)
    }
}

fn check_signature(signature: &Signature) -> Result<()> {
    let mut errors = Errors::default();
    let generics = &signature.generics;
    if !generics.params.is_empty() || generics.where_clause.is_some() {
        errors.add(generics, "a tool cannot be generic: its schema comes from its types");
    }
    if let ReturnType::Type(_, ty) = &signature.output
        && let Type::ImplTrait(_) = **ty
    {
        errors.add(ty, "a tool names the type of its result, because it is more than a function");
    }
    if let Safety::Unsafe(word) = &signature.safety {
        errors.add(word, "a tool cannot be unsafe: a model calls it with any arguments");
    }
    if let Some(word) = &signature.constness {
        errors.add(word, "a tool cannot be const");
    }
    if let Some(abi) = &signature.abi {
        errors.add(abi, "a tool cannot have an ABI");
    }
    errors.finish()
}

fn name(argument: &PatType) -> Result<Ident> {
    match &*argument.pat {
        Pat::Ident(pat) if pat.subpat.is_none() && pat.by_ref.is_none() => Ok(pat.ident.clone()),
        pat => Err(Error::new(
            pat.span(),
            "an argument of a tool needs a name: the model passes it by that name",
        )),
    }
}

fn literal(expression: &Expr) -> Option<String> {
    match expression {
        Expr::Lit(literal) => match &literal.lit {
            Lit::Str(text) => Some(text.value()),
            _ => None,
        },
        _ => None,
    }
}
