"""Stories of about 110 words and poems of eight lines, for visitors: coherent plots that match the request.

A request names a hero and perhaps something that he learns, hates or is afraid of, a companion, a thing with its colour,
or a place. The plot is chosen so that the story uses all of them.
"""

import haste
import phrases
import stories
import wide
import words
from stories import article
from turns import Turn

_ABOUT = ["about {who}", "about {who}", "about {who}", "with {who}", "of {who}", "on {who}"]
_ASK = ["[tell me|tell us|write|write me|make up|invent|give me|can you tell me|can you write|could you tell me|please tell me|i want|i would like|"
        "i want to hear|can you make up|do you know|can i have|please write|let me hear|create|read me] [a|a short|a little|a nice|a long|a new|"
        "a funny|a cute|a bedtime] [story|story|story|tale|fairy tale|bedtime story] {about}[ please|]",
        "[story|a story|short story|bedtime story|fairy tale|tale|a short story|a tale] {about}[ please|, please|]",
        "[story time|once upon a time]: {who}", "tell [my daughter|my son|my kids|my child] a story {about}",
        "[how about|what about|maybe] a [story|tale] {about}?"]
_ASK_ANY = ["[tell me|tell us|write|make up|give me|can you tell me|i want|i want to hear|please tell me|do you know|can i have|invent|read me|"
            "write me|i need] [a|another|any|some|one|a short|a nice|a good|a little|a bedtime|a cute|a kids|a new] [story|stories|tale|fairy tale|bedtime story]"
            "[ please|]", "[story|story please|a story|a story please|stories|bedtime story|story time|short story|tell a story|fairy tale|"
            "another story|one more story|a new story please|tell me something like a story|once upon a time|can you tell stories]"]
_FOR = ["[tell me|write|tell|make up|can you tell|please tell|i need|can you write] a [bedtime|short|little|nice|] story for [my daughter|my son|my "
        "little girl|my kid|my child|my niece|my nephew|my little brother|my little sister|my baby|my friend|my grandson] {who}",
        "[bedtime story|story|a story] for [my daughter|my son|my little boy|my kid|my niece|my friend] {who}",
        "[tell me|write|make up] a story [where the hero is called {who}|with a girl called {who}|about a boy named {who}|about me, i am {who}|"
        "in which {who} is the hero|starring {who}]"]
_GHOST = ["[a|] [scary|spooky|creepy|ghost|horror|halloween|scary ghost|dark] story [please|]",
          "[tell me|write|give me|can you tell me|i want] a [scary|spooky|creepy|ghost|horror|halloween|very scary] story [please|about {who}|]",
          "[scare me|tell me something scary|make it scary|a story to scare my friends|campfire story]"]
_SKILLS = ["cook", "bake", "fly", "swim", "dance", "sing", "paint", "read", "write", "juggle", "skate", "climb", "play the violin", "ride a bicycle", "whistle",
           "play the drum", "knit", "sail", "play football", "tell jokes", "laugh", "count", "jump", "ski", "surf", "draw", "garden", "speak"]
_HATED = ["fire", "water", "rain", "snow", "music", "noise", "spiders", "soup", "mice", "the dark", "heights", "thunder", "birds", "carrots", "baths", "wind",
          "the sea", "dogs", "cats", "flowers", "fish", "Mondays", "homework", "milk", "cheese", "ghosts", "honey", "sand", "people", "storms", "books"]
_HATES = ["who hates {x}", "that hates {x}", "who does not like {x}", "who is afraid of {x}", "that is scared of {x}", "who fears {x}", "scared of {x}"]
_LEARNS = ["who learns to {x}", "that learns to {x}", "who wants to {x}", "that wants to {x}", "learning to {x}", "who cannot {x}", "that can not {x}",
           "who learned to {x}", "who dreams to {x}"]
_PLACES = ["in a quiet forest", "by the sea", "on a high mountain", "in a small village", "in a big city", "on a green island", "in an old castle",
           "on a farm", "in a wild garden", "by a wide river", "in a warm cave", "in an old mill", "in a deep valley", "near the harbour", "by a blue lake"]
_OPEN = ["Once upon a time there was {a_hero} who lived {place}.", "There was once {a_hero} who lived {place}.", "Once there was {a_hero} who lived {place}."]
_OPEN_NAME = ["Once upon a time there was a {kind} called {name} who lived {place}.", "{name} was a {kind} who lived {place}."]
_OPEN_PLOT = {  # the first sentence has the requested subject, so that the plot is chosen where the request is copied
    "learn": ["Once upon a time there was {a_hero} who wanted to {skill}.", "There was once {a_hero} who wanted to {skill}."],
    "hate": ["Once upon a time there was {a_hero} who did not like {hated}.", "There was once {a_hero} who did not like {hated}."],
    "thing": ["Once upon a time there was {a_hero} who found {a_thing}.", "There was once {a_hero} who found {a_thing}."],
    "ghost": ["This is the story of {a_hero} and a ghost."],
}
_OPEN_PLOT_NAME = {"learn": ["Once upon a time there was a {kind} called {name} who wanted to {skill}."]}
_FRIENDS = ["mouse", "bear", "rabbit", "frog", "duck", "horse", "turtle", "snail", "bee", "wolf", "sheep", "goat", "crow", "sparrow", "parrot", "monkey", "cat",
            "dog", "hedgehog", "squirrel", "fox", "goose", "beaver"]
_PLOTS = {
    "learn": [["{The} lived {place} and had never learned it.", "{The} lived {place}, where nobody could teach it."],
              ["At first nothing went right, and everybody laughed.", "The first day was a mess, and the second day was worse."],
              ["\"You will never {skill},\" said the neighbours.", "\"Give up,\" said the others. \"You cannot {skill}.\""],
              ["Only a {friend} was kind and said: \"Try again tomorrow. I will help you.\"",
               "Then a {friend} came by and said: \"I was bad at it too. Let us practise together.\""],
              ["So the two of them practised every morning, before the others woke up.", "So they met every evening and practised until the stars came out."],
              ["Week by week it went a little better.", "Slowly, very slowly, it went better."],
              ["When the summer feast came, {the} stood in front of everybody with a beating heart.",
               "At the great autumn feast {the} stepped forward, and all became quiet."],
              ["And then it happened: {the} could really {skill}, and it was wonderful.", "This time everything went right, and all could see how well {the} could {skill}."],
              ["The neighbours clapped, and the {friend} clapped loudest of all.", "Nobody laughed any more, and the {friend} smiled with pride."],
              ["From that day on, {the} helped everyone who wanted to learn something new."]],
    "hate": [["{The} lived {place} and was happy, but everybody knew about {hated}.", "{The} lived {place} with many friends and liked everything else."],
             ["Whenever there was talk of {hated}, {the} ran away and hid under a blanket.", "At the mere thought of {hated}, {the} began to shake."],
             ["The others made jokes about it, and that made {the} sad.", "\"How silly,\" said the others, and {the} felt very alone."],
             ["One evening a little {friend} knocked at the door and asked for help.", "One day a small {friend} was lost and cried for help."],
             ["The way to its home was full of {hated}.", "To bring it home, one had to get past {hated}."],
             ["{The} took a deep breath and thought: \"My friend needs me now.\"", "{The} was afraid, but the {friend} was even more afraid."],
             ["Hand in hand they went, step by step, and {the} did not look back once.", "So they went together, one small step after the other."],
             ["When they arrived, {the} found that {hated} had not been so bad after all.", "At the end of the way {the} had to laugh: {hated} had done no harm at all."],
             ["The {friend} said: \"You are the bravest of all.\"", "\"Thank you,\" said the {friend}. \"You are a real hero.\""],
             ["And since that day {the} has not been afraid of {hated}."]],
    "thing": [["One morning it lay under an old tree.", "One day it lay at the side of the path."],
              ["The {thing} was the most beautiful thing that {the} had ever seen.", "Never before had {the} seen such a beautiful {thing}."],
              ["But then {the} thought: \"Somebody must miss this {thing}.\"", "But a {thing} does not fall from the sky, so somebody had to miss it."],
              ["So {the} went from door to door and asked everybody.", "{The} asked at every house, but nobody knew whose it was."],
              ["In the last house lived a {friend} who had been crying.", "At last, at the end of the road, sat a sad {friend}."],
              ["\"My {thing}!\" cried the {friend}. \"The wind took it from me.\"", "\"I lost my {thing} yesterday,\" said the {friend}."],
              ["{The} gave it back at once, although it was not easy.", "{The} smiled and gave it back."],
              ["The {friend} was so happy that the two of them danced around the table.", "The {friend} jumped for joy and made hot chocolate for both."],
              ["After that they played with the {thing} together every day.", "From then on they shared the {thing}, and it was twice as nice."],
              ["For a found thing is good, but a found friend is better."]],
    "storm": [["One night a great storm came, and the wind blew out all the lights.", "One night it rained and rained, and the thunder rolled over the hills."],
              ["{The} lay awake and heard a small voice outside.", "{The} could not sleep, and then somebody knocked at the door."],
              ["It was a {friend}, wet and cold, that had lost its way.", "In front of the door stood a {friend}, shaking with cold."],
              ["\"Come in,\" said {the}. \"There is room for two.\"", "\"Come in quickly,\" said {the}, and made a warm bed."],
              ["They sat by the fire, ate bread with honey and told each other stories.", "They drank hot tea, and the {friend} told of far countries."],
              ["The storm grew louder, but together they were not afraid.", "Outside the storm roared, but inside it was warm and bright."],
              ["In the morning the sun was shining, and the world looked new.", "When the morning came, the sky was blue and the birds were singing."],
              ["The {friend} wanted to go on, but first it asked: \"May I come back?\"", "\"How can I thank you?\" asked the {friend}."],
              ["\"Always,\" said {the}, and that is how it was.", "\"Be my friend,\" said {the}, and so it was."],
              ["And whenever a storm comes, the two of them sit by the fire and laugh."]],
    "wish": [["Every evening {the} looked at the stars and made the same wish: to see the world.", "{The} had a dream: to see what lies behind the mountains."],
             ["\"You are much too small for that,\" said the neighbours.", "\"Stay at home,\" said the others. \"It is safe here.\""],
             ["But one morning {the} packed some bread and an apple and left.", "But one spring day {the} took a little bag and went away."],
             ["On the way {the} met a {friend} with a hurt foot.", "At the bridge sat a {friend} that could not go on."],
             ["{The} shared the bread and carried the {friend} over the river.", "{The} stopped, gave it the apple and helped it over the bridge."],
             ["\"I know the way,\" said the {friend}. \"Let us go together.\"", "\"You are kind,\" said the {friend}. \"I will show you the way.\""],
             ["They walked for three days, through forests and over hills.", "They went on for many days and slept under the stars."],
             ["At last they stood on the highest mountain and saw the sea shine in the sun.", "Then they stood at the sea, and it was larger than any dream."],
             ["\"The world is big,\" said {the}, \"but it is best with a friend.\"", "{The} was silent for a long time and was very happy."],
             ["They came home with a hundred stories, and this is one of them."]],
    "ghost": [["On the hill stood an old house in which nobody lived, or so people said.", "Every night at twelve, a light moved in the old house on the hill."],
              ["One dark evening {the} heard a voice from up there: \"Come closer!\"", "One foggy night {the} took a lantern and went up the hill."],
              ["The door opened slowly, all by itself.", "The stairs creaked, although nobody was there."],
              ["The air grew cold, and a white ghost came out of the wall.", "Behind the curtain something white began to move. It was a ghost!"],
              ["{The} wanted to run, but the door fell shut.", "{The} could not move for fear."],
              ["\"At last,\" whispered the ghost. \"I have waited a hundred years.\"", "The ghost came nearer and nearer, and its chains rattled."],
              ["\"What do you want?\" asked {the} with a shaking voice.", "\"Wh-what for?\" asked {the}."],
              ["\"Somebody to play cards with,\" said the ghost, and it smiled.", "\"I only want company,\" said the ghost. \"It is so lonely here.\""],
              ["So they played until the morning, and the ghost won every game.", "They sat together until the sun rose, and then the ghost was gone."],
              ["But when {the} came home, there was a cold white hand print on the coat."]],
}
_KINDS = ["child", "farmer", "baker", "painter", "gardener", "singer", "girl", "boy"]
_ENDS = ["", "", " The end."]
_POEM_ASK = ["[write|write me|make|tell me|give me|can you write|could you write|please write|i want|i would like|compose|can you make|do you know|create] [a|a short|a little|a nice"
             "|a sweet|one] [poem|rhyme|verse|poem|poem] [about|on|for|about] {x}[ please|]",
             "[poem|a poem|short poem|rhyme|a little poem|poems] [about|on|for] {x}[ please|, please|]"]
_POEM_ANY = ["[write|write me|make|tell me|can you write|please write|give me|i want|do you know] [a|a short|another|any|some|one more] [poem|rhyme|poetry|poems][ please|]",
             "[poem|a poem|poem please|poetry|another poem|a poem please|rhyme please]"]
_LOVE_ASK = ["[write|write me|make|can you write|please write|give me|i need|compose] [a|a short|a little|a sweet|] [love poem|romantic poem|poem about love|valentine poem|poem for my girlfriend|"
             "poem for my boyfriend|poem for my wife|poem for my husband|poem for my crush|poem about my love][ please|]", "[love poem|romantic poem|poem about love|love poem please|a poem for my love]"]
_POEM_SONG = ("A little song for {x} I sing,\nof all the joy that {x} can bring.\nWhen day is done and stars are bright,\n"
              "I think of {x} and say good night.")  # suitable for every subject in its requested form: "rain", "my dog", "the sea"
_POEMS = ["The {x} is here, the {x} is near,\nit makes the day so bright and clear.\nAnd when the evening light is low,\nthe {x} will dream in golden glow.",
          "I saw a {x} one day in spring,\nit made my heart begin to sing.\nThe {x} was gone, the day was long,\nbut I still hum our little song."]
_LOVE = ["I love you more than words can say,\nI think of you by night and day.\nYou are my sun, you are my sea,\nand home is where you are with me."]
_ROSES_ASK = ["roses are red violets are blue", "[finish|complete|continue]: roses are red", "roses are red and", "roses are red, violets are", "roses are rd",
              "[say|tell me|do you know|recite] the roses are red poem", "a roses are red poem", "roses r red", "do roses are red", "roses are red then what"]
_ROSES = "Roses are red,\nviolets are blue,\nhoney is sweet,\nand so are you."


def _slots(rng, noun, name, trait, friend, place, **more):
    the = name or f"the {noun}"
    a_hero = article(f"{trait} {noun}" if trait else noun) if noun else ""
    return {"the": the, "The": the[0].upper() + the[1:], "a_hero": a_hero, "name": name, "kind": rng.choice(_KINDS),
            "friend": friend, "place": place, **more}


FIRST_SHARE = 0.6  # share of the beats that use their first wording: a small model learns wordings that occur often
_SPARE = {"learn": (2, 5), "hate": (2,), "thing": (1, 2), "storm": (5,), "wish": (1,), "ghost": (3,)}  # optional beats of each plot


def tell(rng, plot, slots):
    spared = rng.choice(_SPARE[plot])
    beats = [beat for index, beat in enumerate(_PLOTS[plot]) if index != spared]
    opens = _OPEN_PLOT_NAME.get(plot, _OPEN_NAME) if slots["name"] else _OPEN_PLOT.get(plot, _OPEN)
    parts = [rng.choice(opens)] + [beat[0] if rng.random() < FIRST_SHARE else rng.choice(beat) for beat in beats]
    return " ".join(parts).format(**slots) + rng.choice(_ENDS)


def _hero(source):
    rng = source.rng
    if rng.random() < 0.3:
        return _strange(source)
    return rng.choice(words.ANIMALS + words.HEROES)


def _strange(source):
    """Returns a thing or a hero that is not in our lists, so that the story has to copy it."""
    rng, draw = source.rng, source.rng.random()
    if draw < 0.4:
        return words.odd_word(rng)
    if draw < 0.8:
        return rng.choice([w for w in words._COPIED if w.islower()])
    return rng.choice(wide.ODD_THINGS)


def _wish(source):
    """Returns (subject of the request, plot, slots, words that the story must contain)."""
    rng, noun = source.rng, _hero(source)
    trait = rng.choice(words.TRAITS) if rng.random() < 0.25 else ""
    friend = rng.choice([f for f in _FRIENDS if f != noun])
    place = rng.choice(_PLACES)
    who = article(f"{trait} {noun}" if trait else noun)
    draw, more = rng.random(), {}
    if draw < 0.26:
        plot, more["skill"] = "learn", rng.choice(_SKILLS)
        who += " " + rng.choice(_LEARNS).format(x=more["skill"])
    elif draw < 0.50:
        plot, more["hated"] = "hate", rng.choice(_HATED)
        who += " " + rng.choice(_HATES).format(x=more["hated"])
    elif draw < 0.74:
        plot, thing = "thing", _strange(source) if rng.random() < 0.3 else rng.choice(words.OBJECTS)
        if rng.random() < 0.5:
            thing = f"{rng.choice(words.COLOURS)} {thing}"
        more.update(thing=thing, a_thing=article(thing))
        who += rng.choice([" and {t}", " with {t}", " who finds {t}", " and {t}", " that has {t}"]).format(t=article(thing))
    else:
        plot = rng.choice(["storm", "wish", "learn", "thing"])
        more = {"skill": rng.choice(_SKILLS[:8]), "thing": "lantern", "a_thing": "a lantern"}
        if rng.random() < 0.3:
            who += f" and {article(friend)}"
    if rng.random() < 0.15:
        who += " " + place
    return who, plot, _slots(rng, noun, None, trait, friend, place, **more), noun


def story(source):
    """Returns (Turn, hero): a request in any form and its story."""
    rng = source.rng
    draw = rng.random()
    if draw < 0.62:
        who, plot, slots, hero = _wish(source)
        if rng.random() < 0.25:
            asked = phrases.as_typed(source, source.say(stories._ASK_WAYS, who=who))
        else:
            text = haste.expand(rng, rng.choice(_ASK[:2] * 4 + _ASK)).replace("{about}", rng.choice(_ABOUT)).replace("{who}", who)
            asked = haste.hasty(rng, text, [who])
    elif draw < 0.76:
        hero = source.name()
        friend = rng.choice(_FRIENDS)
        slots = _slots(rng, None, hero, "", friend, rng.choice(_PLACES), thing="lantern", a_thing="a lantern", skill=rng.choice(_SKILLS[:8]))
        plot = rng.choice(["storm", "wish", "learn"])
        asked = haste.hasty(rng, haste.expand(rng, rng.choice(_FOR)).replace("{who}", hero), [hero])
    else:
        ghost = draw < 0.85
        hero = rng.choice(["girl", "boy", "miller", "shepherd", "baker"]) if ghost else rng.choice(["fox", "robot", "mouse", "dragon", "bear", "owl", "princess", "hedgehog"])
        slots = _slots(rng, hero, None, rng.choice(["little", "curious", "brave"]), rng.choice([f for f in _FRIENDS if f != hero]), rng.choice(_PLACES),
                       thing="lantern", a_thing="a lantern", skill=rng.choice(_SKILLS[:8]))
        plot = "ghost" if ghost else rng.choice(["storm", "wish", "thing", "learn"])
        text = haste.expand(rng, rng.choice(_GHOST if ghost else _ASK_ANY)).replace("{who}", "a ghost")
        asked = haste.hasty(rng, text)
        hero = "ghost" if ghost else hero
    return Turn("visit/story", asked, tell(rng, plot, slots), lambda t: hero.lower() in t.lower() and len(t.split()) > 60), hero


def poem(source):
    rng, draw = source.rng, source.rng.random()
    if draw < 0.12:
        return Turn("visit/poem", haste.hasty(rng, haste.expand(rng, rng.choice(_LOVE_ASK))), _LOVE[0])
    if draw < 0.20:
        return Turn("visit/poem", haste.hasty(rng, haste.expand(rng, rng.choice(_ROSES_ASK)), framed=False), _ROSES)
    asked = rng.random() < 0.85
    strange = asked and rng.random() < 0.55
    if strange:  # the subject is uncountable, or not in a list
        shown = _subject(source)
        subject = shown.split(" ", 1)[-1] if shown.startswith(("my ", "our ")) else shown
    else:
        subject = words.odd_word(rng) if rng.random() < 0.1 else rng.choice(words.ANIMALS + words.OBJECTS + ["moon", "sun", "sea", "tree", "flower"])
        shown = rng.choice([f"the {subject}", article(subject), f"my {subject}", f"my {subject}", f"{subject}s"])
    if not asked:
        text = haste.hasty(rng, haste.expand(rng, rng.choice(_POEM_ANY)))
    elif rng.random() < 0.25:
        text = phrases.as_typed(source, source.say(stories._POEM_WAYS, x=shown))
    else:
        text = haste.hasty(rng, haste.expand(rng, rng.choice(_POEM_ASK)).replace("{x}", shown), [shown])
    alone = strange or shown == f"{subject}s"
    sung = "your " + subject if shown.startswith(("my ", "our ")) else shown
    told = _POEM_SONG.replace("{x}", sung) if asked and alone else (_POEMS[0] if subject in words.OBJECTS else rng.choice(_POEMS)).replace("{x}", subject)
    return Turn("visit/poem", text, told, lambda t: (subject in t or not asked) and t.count("\n") == 3)


_MASS = ["rain", "snow", "wind", "night", "spring", "winter", "summer", "autumn", "water", "fire", "time", "music", "sleep", "home", "light", "coffee", "tea", "hope", "peace",
         "friendship", "happiness", "sunshine", "ice", "thunder", "mist", "silence", "life", "nature", "chocolate", "school", "joy", "freedom", "family", "work", "dreams"]


def _subject(source):
    """Returns the subject of a poem: rain, a name, an unknown word, my mother."""
    rng, draw = source.rng, source.rng.random()
    if draw < 0.35:
        return rng.choice(_MASS)
    if draw < 0.5:
        return source.name()
    if draw < 0.65:
        return _strange(source)
    if draw < 0.8:
        return rng.choice(words.FOODS + words.MORE_FOODS + words.HOBBIES + words.CITIES)
    return rng.choice(["my", "my", "the", "our"]) + " " + rng.choice(
        ["mother", "friend", "father", "garden", "house", "sister", "brother", "grandmother", "teacher", "car", "village", "stars", "mountains", "clouds", "children", "sky", "forest"])
