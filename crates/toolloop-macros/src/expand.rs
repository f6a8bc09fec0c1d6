//! [`expand`]: the code of a tool.
//!
//! A tool is a unit struct with the function's name, so that it is a value that implements
//! `ToolHandler`. It derefs to a pointer to the function, so that it can still be called. The
//! rest stands in a nameless constant, where only names with two underscores in front are added
//! to those that the function sees.

use proc_macro2::{Span, TokenStream};
use quote::{ToTokens, format_ident, quote, quote_spanned};
use syn::ext::IdentExt;
use syn::spanned::Spanned;
use syn::{Attribute, Path, ReturnType, parse_quote};

use crate::function::{Argument, Function};
use crate::options::{Effect, Options};

/// The code of the tool that `function` makes.
pub(crate) fn expand(options: &Options, function: &Function) -> TokenStream {
    let Function { docs, visibility, signature, body, .. } = function;
    let name = &signature.ident;
    let is_cfg = |attribute: &&Attribute| attribute.path().is_ident("cfg");
    let (cfg, attributes): (Vec<_>, Vec<_>) = function.attributes.iter().partition(is_cfg);
    let krate = &options.krate;
    let runtime = parse_quote!(#krate::__private);
    let arguments = arguments(&runtime, function);
    let deref = deref(&runtime, function);
    let handler = handler(&runtime, options, function);
    quote! {
        #docs
        #(#cfg)*
        #[allow(non_camel_case_types)]
        #[derive(Clone, Copy, Debug)]
        #visibility struct #name;

        #(#cfg)*
        const _: () = {
            #(#attributes)*
            #signature #body

            #arguments
            #deref
            #handler
        };
    }
}

/// The struct that the model's arguments are read into; its schema is that of the tool.
fn arguments(runtime: &Path, function: &Function) -> TokenStream {
    let serde = quote!(#runtime::serde).to_string();
    let schemars = quote!(#runtime::schemars).to_string();
    let fields = function.arguments.iter().filter_map(|argument| match argument {
        Argument::Value(value) => {
            let (docs, attributes) = (&value.docs, &value.attributes);
            let (ident, ty) = (&value.ident, &value.ty);
            Some(quote!(#docs #(#attributes)* #ident: #ty))
        }
        _ => None,
    });
    // Says in one sentence what the derived code says in many.
    let checks = function.arguments.iter().filter_map(|argument| match argument {
        Argument::Value(value) => {
            let (ty, runtime) = (&value.ty, at(value.ty.span(), runtime));
            Some(quote_spanned!(ty.span()=> #runtime::check_argument::<#ty>();))
        }
        _ => None,
    });
    quote! {
        const _: () = { #(#checks)* };

        #[derive(#runtime::serde::Deserialize, #runtime::schemars::JsonSchema)]
        #[serde(crate = #serde, deny_unknown_fields)]
        #[schemars(crate = #schemars)]
        struct __Arguments {
            #(#fields,)*
        }
    }
}

/// The way to call the tool as a function.
fn deref(runtime: &Path, function: &Function) -> TokenStream {
    let name = &function.signature.ident;
    let types = function.arguments.iter().map(|argument| match argument {
        Argument::Context(ty) | Argument::Call(ty) => quote!(&'__call #ty),
        Argument::Value(value) => value.ty.to_token_stream(),
    });
    let types = quote!(#(#types),*);
    let borrows = function.arguments.iter().any(|a| !matches!(a, Argument::Value(_)));
    let (binder, lifetime) = match borrows {
        true => (Some(quote!(for<'__call>)), quote!('__call)),
        false => (None, quote!('static)),
    };
    let returned = match &function.signature.output {
        ReturnType::Default => quote!(()),
        ReturnType::Type(_, ty) => ty.to_token_stream(),
    };
    let (returned, pointer) = match function.signature.asyncness {
        // A pointer cannot name the future of an async function.
        Some(_) => {
            let inputs: Vec<_> =
                (0..function.arguments.len()).map(|n| format_ident!("__{n}")).collect();
            (
                quote!(#runtime::BoxFuture<#lifetime, #returned>),
                quote!(|#(#inputs),*| ::std::boxed::Box::pin(#name(#(#inputs),*))),
            )
        }
        None => (returned, name.to_token_stream()),
    };
    quote! {
        #[automatically_derived]
        impl ::core::ops::Deref for #name {
            type Target = #binder fn(#types) -> #returned;

            fn deref(&self) -> &Self::Target {
                const __FUNCTION: #binder fn(#types) -> #returned = #pointer;
                &__FUNCTION
            }
        }
    }
}

/// The tool as the loop sees it.
fn handler(runtime: &Path, options: &Options, function: &Function) -> TokenStream {
    let name = &function.signature.ident;
    let tool_name = options.name.clone().unwrap_or_else(|| name.unraw().to_string());
    let description = function.docs.text();
    let context = function.arguments.iter().find_map(|argument| match argument {
        Argument::Context(ty) => Some(ty.to_token_stream()),
        _ => None,
    });
    let generic = context.is_none().then(|| quote!(<__Context>));
    let context = context.unwrap_or_else(|| quote!(__Context));
    let run = run(runtime, &tool_name, function);
    let wants_call = function.arguments.iter().any(|a| matches!(a, Argument::Call(_)));
    let call = wants_call.then(|| {
        quote! {
            fn call<'a>(
                &'a self,
                __input: #runtime::Value,
                __call: &'a #runtime::CallContext,
                __context: &'a #context,
            ) -> #runtime::BoxFuture<'a, #runtime::Outcome> {
                ::std::boxed::Box::pin(async move { #run })
            }
        }
    });
    let detached =
        wants_call.then(|| quote!(let __call = &#runtime::CallContext::detached(#tool_name);));
    let effect = match options.effect {
        Effect::ReadOnly => quote!(ReadOnly),
        Effect::Idempotent => quote!(Idempotent),
        Effect::Once => quote!(Once),
    };
    let time_limit = options.timeout.map(|timeout| {
        // It was read from whole milliseconds in 64 bits.
        let millis = timeout.as_millis() as u64;
        quote! {
            fn time_limit(&self) -> ::core::option::Option<::core::time::Duration> {
                ::core::option::Option::Some(::core::time::Duration::from_millis(#millis))
            }
        }
    });
    quote! {
        #[automatically_derived]
        impl #generic #runtime::ToolHandler<#context> for #name {
            fn definition(&self) -> #runtime::ToolDefinition {
                #runtime::ToolDefinition::from_type::<__Arguments>(#tool_name, #description)
            }

            fn execute<'a>(
                &'a self,
                __input: #runtime::Value,
                __context: &'a #context,
            ) -> #runtime::BoxFuture<'a, #runtime::Outcome> {
                ::std::boxed::Box::pin(async move {
                    #detached
                    #run
                })
            }

            #call

            fn effect_class(&self) -> #runtime::EffectClass {
                #runtime::EffectClass::#effect
            }

            #time_limit
        }
    }
}

/// From `__input` to the outcome.
fn run(runtime: &Path, tool_name: &str, function: &Function) -> TokenStream {
    let name = &function.signature.ident;
    let inputs = function.arguments.iter().map(|argument| match argument {
        Argument::Context(_) => quote!(__context),
        Argument::Call(_) => quote!(__call),
        Argument::Value(value) => {
            let ident = &value.ident;
            quote!(__arguments.#ident)
        }
    });
    let dot_await = function.signature.asyncness.map(|_| quote!(.await));
    let outcome = outcome(runtime, &function.signature.output);
    quote! {
        #[allow(unused_imports)]
        use #runtime::ReturnedAny as _;
        let __arguments: __Arguments = #runtime::read_arguments(#tool_name, __input)?;
        let __returned = #name(#(#inputs),*)#dot_await;
        #outcome
    }
}

/// From `__returned` to the outcome. What cannot be returned is reported where its type stands.
fn outcome(runtime: &Path, output: &ReturnType) -> TokenStream {
    let span = match output {
        ReturnType::Default => Span::call_site(),
        ReturnType::Type(_, ty) => ty.span(),
    };
    let runtime = at(span, runtime);
    quote_spanned! {span=>
        match #runtime::Returned(__returned).into_result() {
            ::core::result::Result::Ok(__value) => {
                #runtime::output(#runtime::Returned(__value).into_value())
            }
            ::core::result::Result::Err(__error) => {
                ::core::result::Result::Err(#runtime::failure(__error))
            }
        }
    }
}

/// The path as if it stood at `span`.
fn at(span: Span, path: &Path) -> TokenStream {
    let tokens = path.to_token_stream().into_iter();
    tokens
        .map(|mut token| {
            token.set_span(span);
            token
        })
        .collect()
}
