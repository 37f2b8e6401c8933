"""Facts that the user states and asks about later: the part of a conversation that needs the context.

A Memory stores the facts stated in one conversation, so that questions have the right answer,
including "you have not told me".
"""

import phrases
import words
from turns import Turn

TELL = {
    "name": ["My name is {x}.", "I am {x}.", "Call me {x}.", "I am called {x}.", "Hello, my name is {x}.",
             "People call me {x}.", "You can call me {x}.", "Hi, I am {x}.", "The name is {x}.", "Hi, my name is {x}.",
             "Please call me {x}.", "Hello, I am {x}.", "This is {x}.", "Hello, {x} here.", "Hi there, I am {x}.",
             "Good day, my name is {x}."],
    "city": ["I live in {x}.", "I am from {x}.", "I come from {x}.", "My home is {x}.", "My city is {x}.",
             "My home is in {x}.", "I was born in {x} and live there.", "I am living in {x}.", "My home town is {x}.",
             "I have a flat in {x}.", "{x} is my home.", "I am at home in {x}."],
    "age": ["I am {x} years old.", "I am {x}.", "My age is {x}.", "I just turned {x}.", "I turned {x} today.",
            "I am {x} years of age.", "I am now {x} years old.", "Today I am {x} years old."],
    "colour": ["My favourite colour is {x}.", "I like the colour {x}.", "My favorite color is {x}.",
               "The colour I like best is {x}.", "I love the colour {x}.", "I like the color {x} best.",
               "{x} is my favourite colour."],
    "food": ["My favourite food is {x}.", "I like to eat {x}.", "I love {x}.", "My favorite food is {x}.",
             "The food I like best is {x}.", "I love to eat {x}.", "I could eat {x} every day."],
    "job": ["I am a {x}.", "I work as a {x}.", "My job is {x}.", "By trade I am a {x}.", "I earn my money as a {x}.",
            "I am working as a {x}.", "My work is that of a {x}."],
    "hobby": ["My hobby is {x}.", "I like {x}.", "In my free time I like {x}.", "What I like to do is {x}.",
              "I enjoy {x}.", "My favourite hobby is {x}.", "For fun I like {x}."],
    "pet": ["My {y} is called {x}.", "I have a {y} called {x}.", "I have a {y} named {x}.",
            "My {y}'s name is {x}.", "My pet is a {y} called {x}.", "We have a {y} called {x}.",
            "The name of my {y} is {x}."],
    "word": ["Remember the word {x}.", "Please remember this word: {x}", "The secret word is {x}.",
             "Keep the word {x} in mind.", "Remember this: {x}", "Please keep in mind the word {x}.",
             "The password is {x}.", "Remember {x}."],
}
ACK = {
    "name": "Nice to meet you, {x}!", "city": "{x} sounds like a fine place to live.",
    "age": "{x} is a good age.", "colour": "{X} is a beautiful colour.", "food": "Oh, {x}! That sounds tasty.",
    "job": "So you are a {x}. That sounds interesting.", "hobby": "{X} sounds like fun.",
    "pet": "{x} is a lovely name for a {y}.", "word": "I will remember it.",
}
ASK = {
    "name": ["What is my name?", "Do you know my name?", "What's my name?", "Who am I?", "Do you remember my name?",
             "Can you tell me my name?", "Tell me my name.", "What am I called?", "Say my name.",
             "How am I called?", "Do you still know my name?", "Do you know what my name is?",
             "Do you know who I am?", "What was my name [again|]?", "Have I told you my name?", "Remember my name?",
             "My name is what?", "Which name do I have?"],
    "city": ["Where do I live?", "Which city am I from?", "Do you know where I live?", "Where am I from?",
             "What is my city?", "In which city do I live?", "Where is my home?", "Tell me where I live.",
             "Do you remember where I live?", "What city do I live in?", "Which city do I live in?",
             "Can you tell me where I live?"],
    "age": ["How old am I?", "What is my age?", "Do you know how old I am?", "Tell me my age.", "Do you know my age?",
            "Do you remember how old I am?", "Do you remember my age?", "Can you tell me my age?"],
    "colour": ["What is my favourite colour?", "Which colour do I like?", "What's my favorite color?",
               "Do you know my favourite colour?", "Tell me my favourite colour.", "Which color do I like best?",
               "What colour do I like?", "Do you remember my favourite colour?"],
    "food": ["What is my favourite food?", "What do I like to eat?", "What's my favorite food?",
             "Do you know my favourite food?", "Which food do I like?", "Do you remember my favourite food?",
             "Tell me my favourite food.", "What food do I like best?"],
    "job": ["What is my job?", "What do I work as?", "Do you know my job?", "What do I do for a living?",
            "Tell me my job.", "Do you remember my job?", "What's my job?", "What is my work?"],
    "hobby": ["What is my hobby?", "What do I like to do?", "Do you know my hobby?", "What's my hobby?",
              "Tell me my hobby.", "Do you remember my hobby?", "What do I enjoy?"],
    "pet": ["What is my {y} called?", "What is the name of my {y}?", "Do you know the name of my {y}?",
            "What's my {y}'s name?", "How is my {y} called?", "Do you remember the name of my {y}?",
            "Tell me the name of my {y}.", "What is my {y}'s name?"],
    "word": ["What is the word?", "What was the word?", "Which word did I tell you?", "What is the secret word?",
             "Tell me the word.", "What was the secret word?", "Do you remember the word?", "What is the password?",
             "Say the word again.", "Which word should you remember?"],
}
ASK_MORE = {  # for the last stage of training
    "name": ["Do you know how I am called?", "Do you still know who I am?", "Can you remember my name?",
             "Can you say my name?", "Which name did I tell you?", "Do you remember who I am?", "My name, please?",
             "What do people call me?", "Tell me what my name is.", "What name do I have?", "And my name is?"],
    "city": ["In which town do I live?", "In what city do I live?", "Can you say where I live?", "Where do I come from?",
             "Which city is my home?", "What city am I from?", "Can you tell me where I am from?",
             "Can you tell me which city I live in?", "Do you still know where I live?", "In which city is my home?",
             "Say where I live.", "Where did I say I live?", "Can you remember where I live?"],
    "age": ["How many years old am I?", "Can you tell me how old I am?", "Can you remember how old I am?",
            "Can you say my age?", "Tell me how old I am.", "Do you still know my age?", "Say how old I am."],
    "colour": ["Which color is my favourite?", "Which colour do I like best?", "Which color do I like?",
               "What color do I like best?", "What colour do I like best?", "What color is my favorite?",
               "What is the color I like best?", "Do you remember which color I like?", "Which colour do I love?",
               "Which color do I like most?", "Tell me which colour I like.", "Do you know which color I like best?"],
    "food": ["Do you remember what I like to eat?", "Can you remember my favourite food?", "Which food is my favourite?",
             "Do you remember my favorite food?", "Do you still know my favourite food?", "Do you remember which food I like?",
             "Which food do I like best?", "Do you remember the food I like?", "Can you tell me my favourite food?",
             "What do I love to eat?", "Remember my favourite food?", "Do you know what I like to eat?"],
    "job": ["Do you remember what I work as?", "Do you remember what my job is?", "Can you remember my job?",
            "Do you still know my job?", "Can you tell me my job?", "Remember my job?", "What job do I have?",
            "Which job do I have?", "Do you know what I do for a living?", "Do you remember what I do?"],
    "hobby": ["Do you remember what my hobby is?", "Can you remember my hobby?", "Do you still know my hobby?",
              "Do you remember what I like to do?", "Remember my hobby?", "Which hobby do I have?",
              "Can you tell me my hobby?", "Do you know what my hobby is?", "What do I do for fun?"],
    "pet": ["Do you remember what my {y} is called?", "Can you tell me the name of my {y}?", "Which name has my {y}?",
            "Do you know what my {y} is called?", "Do you remember my {y}'s name?", "Do you know my {y}'s name?",
            "What name does my {y} have?", "Do you still know the name of my {y}?", "Say the name of my {y}."],
    "word": ["What is the secret?", "Which word was it?", "What was the password?", "What was the secret?",
             "Which was the secret word?", "Which word was the secret word?", "What secret word did I tell you?",
             "What word was it?", "What was my word?", "Do you know the secret word?", "Do you remember the secret word?",
             "Tell me the secret word.", "What was the word I told you?", "Which word did I give you?"],
}
TELL_MORE = {
    "name": ["By the way, I am {x}.", "My first name is {x}.", "They call me {x}.", "Hey, I am {x}.", "It is {x} here."],
    "city": ["I live here in {x}.", "I come from the city of {x}.", "My house is in {x}.", "Now I live in {x}.",
             "I have a house in {x}.", "I am at home in {x}, you know."],
    "age": ["I am already {x}.", "I am {x} years old now.", "I turned {x} last week.", "My age is {x} years."],
    "colour": ["{x} is the colour I like best.", "I like {x} best of all colours.", "My favorite colour is {x}.",
               "I like the color {x}.", "My best colour is {x}."],
    "food": ["{x} is my favourite food.", "My favourite dish is {x}.", "I like {x} best of all food.",
             "I love to have {x}.", "The best food is {x}, I think.", "I always eat {x}."],
    "job": ["I have a job as a {x}.", "I am a {x} by trade.", "I am a {x} at work.", "My trade is that of a {x}."],
    "hobby": ["{x} is my hobby.", "My favorite hobby is {x}.", "I do {x} in my free time.", "I love {x} as a hobby."],
    "pet": ["{x} is the name of my {y}.", "My {y} has the name {x}.", "I call my {y} {x}.", "I own a {y} called {x}."],
    "word": ["My word is {x}.", "The word is {x}. Remember it.", "The secret is {x}.", "Keep this word: {x}",
             "Do not forget the word {x}.", "The secret word is {x}, remember that."],
}
REPLY = {
    "name": "Your name is {x}.", "city": "You live in {x}.", "age": "You are {x} years old.",
    "colour": "Your favourite colour is {x}.", "food": "Your favourite food is {x}.", "job": "You are a {x}.",
    "hobby": "Your hobby is {x}.", "pet": "Your {y} is called {x}.", "word": "The word is {x}.",
}
UNKNOWN = {
    "name": "your name", "city": "where you live", "age": "how old you are", "colour": "your favourite colour",
    "food": "your favourite food", "job": "your job", "hobby": "your hobby", "pet": "the name of your {y}",
    "word": "a word",
}
_TELL_WAYS = {kind: phrases.ways(TELL[kind], TELL_MORE[kind]) for kind in TELL}
_ASK_WAYS = {kind: phrases.ways(ASK[kind], ASK_MORE[kind]) for kind in ASK}
PETS = ["cat", "dog", "bird", "horse", "rabbit", "fish", "parrot", "hamster"]


class Memory:
    def __init__(self, source):
        self.source = source
        self.told = {}
        self.pet = source.rng.choice(PETS)

    def _value(self, kind):
        source = self.source
        odd = source.odd(0.4) if kind in ("colour", "food", "job", "hobby", "word") else None
        if odd:
            return odd
        makers = {
            "name": source.name, "city": source.city, "age": lambda: source.rng.randint(6, 98),
            "colour": lambda: source.word(words.COLOURS), "food": lambda: source.word(words.FOODS),
            "job": lambda: source.word(words.JOBS), "hobby": lambda: source.word(words.HOBBIES),
            "pet": source.name, "word": lambda: source.word(words.OBJECTS + words.ANIMALS),
        }
        return makers[kind]()

    def pick_kind(self):
        kinds = list(TELL)
        return self.source.rng.choices(kinds, (8, 3, 2, 2, 2, 2, 2, 3, 2))[0]

    def _fill(self, text, value=""):
        shown = str(value)
        return text.format(x=shown, X=shown[:1].upper() + shown[1:], y=self.pet)

    def tell(self, kind):
        value = self._value(kind)
        self.told[kind] = value
        template = self.source.template(_TELL_WAYS[kind])
        user = self._fill(template, value)
        user = phrases.as_typed(self.source, user[0].upper() + user[1:], keep_case=True)
        user = user.replace(" a a", " an a").replace(" a e", " an e")
        answer = self._fill(ACK[kind], value).replace(" a a", " an a").replace(" a e", " an e")
        return Turn(f"memory/tell-{kind}", user, answer)

    def ask(self, kind):
        asked = phrases.fill(self.source, self.source.template(_ASK_WAYS[kind]), {"y": self.pet})
        user = phrases.as_typed(self.source, asked)
        if kind in self.told:
            answer = self._fill(REPLY[kind], self.told[kind]).replace(" a a", " an a").replace(" a e", " an e")
            return Turn(f"memory/{kind}", user, answer)
        return Turn(f"memory/unknown-{kind}", user, self._fill(f"You have not told me {UNKNOWN[kind]} yet."))
